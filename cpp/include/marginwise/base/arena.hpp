// A large array in address space that is backed by memory only where it has been written. It grows
// without copying if the system can move its pages.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "marginwise/base/types.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define MARGINWISE_MMAP 1
#include <sys/mman.h>
#include <unistd.h>
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#endif

namespace marginwise {

template <class V>
class Arena {
  public:
    Arena() = default;
    explicit Arena(Index n) : bytes_(bytes_of(n)) {
#ifdef MARGINWISE_MMAP
        void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) throw std::bad_alloc();
#else
        void* p = std::malloc(bytes_);
        if (!p) throw std::bad_alloc();
#endif
        data_ = static_cast<V*>(p);
    }
    ~Arena() { free(); }
    Arena(Arena&& other) noexcept { swap(other); }
    Arena& operator=(Arena&& other) noexcept {
        swap(other);
        return *this;
    }

    V* data() const { return data_; }
    Index size() const { return static_cast<Index>(bytes_ / sizeof(V)); }

    // Makes room for n values and keeps the stored ones; data() may change. Throws and changes
    // nothing if memory is exhausted.
    void grow(Index n) {
        if (n <= size()) return;
#ifdef MREMAP_MAYMOVE
        if (data_) {
            void* p = mremap(data_, bytes_, bytes_of(n), MREMAP_MAYMOVE);
            if (p == MAP_FAILED) throw std::bad_alloc();
            data_ = static_cast<V*>(p);
            bytes_ = bytes_of(n);
            return;
        }
#endif
        Arena larger(n);
        if (data_) std::memcpy(larger.data_, data_, bytes_);
        swap(larger);
    }

    // A hint: backs values first .. last with memory at once, which is faster than page by page.
    void back(Index first, Index last) {
#ifdef MADV_POPULATE_WRITE
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t begin = bytes_of(first) / page * page;
        const std::size_t end = std::min(bytes_of(last), bytes_);
        if (begin < end)
            madvise(reinterpret_cast<char*>(data_) + begin, end - begin, MADV_POPULATE_WRITE);
#else
        static_cast<void>(first), static_cast<void>(last);
#endif
    }

    // Releases the memory after the first n values. The released values are lost, but may be
    // written again.
    void release(Index n) {
#ifdef MARGINWISE_MMAP
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t begin = (bytes_of(n) + page - 1) / page * page;
        if (data_ && begin < bytes_)
            madvise(reinterpret_cast<char*>(data_) + begin, bytes_ - begin, MADV_DONTNEED);
#else
        static_cast<void>(n);
#endif
    }

  private:
    static std::size_t bytes_of(Index n) { return static_cast<std::size_t>(n) * sizeof(V); }

    void free() {
        if (!data_) return;
#ifdef MARGINWISE_MMAP
        munmap(data_, bytes_);
#else
        std::free(data_);
#endif
    }

    void swap(Arena& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }

    V* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace marginwise
