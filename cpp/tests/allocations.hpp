// Counts what is allocated. Included once per program, whose operator new it replaces.
#pragma once

#include <cstdlib>
#include <new>

namespace {
long allocations = 0;
}

void* operator new(std::size_t n) {
    ++allocations;
    if (void* p = std::malloc(n > 0 ? n : 1)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
