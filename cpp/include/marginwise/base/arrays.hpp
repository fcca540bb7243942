// Arrays with signed indices. Builds without NDEBUG check every access.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace marginwise {

// A signed index. Two index spaces are kept apart everywhere: `id` names an example, `s` is a
// position among the members.
using Index = std::ptrdiff_t;
inline constexpr Index kNone = -1;

// std::vector with sizes and indices of type Index.
template <class T, class Allocator = std::allocator<T>>
class Vector {
    using Items = std::vector<T, Allocator>;

  public:
    using value_type = T;
    using iterator = typename Items::iterator;
    using const_iterator = typename Items::const_iterator;

    Vector() = default;
    explicit Vector(Index n) : items_(unsigned_size(n)) {}
    Vector(Index n, const T& value) : items_(unsigned_size(n), value) {}
    Vector(std::initializer_list<T> values) : items_(values) {}
    template <class It, class = typename std::iterator_traits<It>::iterator_category>
    Vector(It first, It last) : items_(first, last) {}

    Index size() const { return static_cast<Index>(items_.size()); }
    Index capacity() const { return static_cast<Index>(items_.capacity()); }
    bool empty() const { return items_.empty(); }

    T& operator[](Index k) { return items_[checked(k)]; }
    const T& operator[](Index k) const { return items_[checked(k)]; }
    T& front() { return (*this)[0]; }
    const T& front() const { return (*this)[0]; }
    T& back() { return (*this)[size() - 1]; }
    const T& back() const { return (*this)[size() - 1]; }

    T* data() { return items_.data(); }
    const T* data() const { return items_.data(); }
    iterator begin() { return items_.begin(); }
    iterator end() { return items_.end(); }
    const_iterator begin() const { return items_.begin(); }
    const_iterator end() const { return items_.end(); }
    auto rbegin() const { return items_.rbegin(); }
    auto rend() const { return items_.rend(); }

    void reserve(Index n) { items_.reserve(unsigned_size(n)); }
    void resize(Index n) { items_.resize(unsigned_size(n)); }
    void resize(Index n, const T& value) { items_.resize(unsigned_size(n), value); }
    void shrink_to_fit() { items_.shrink_to_fit(); }
    void clear() { items_.clear(); }
    void assign(Index n, const T& value) { items_.assign(unsigned_size(n), value); }
    template <class It, class = typename std::iterator_traits<It>::iterator_category>
    void assign(It first, It last) {
        items_.assign(first, last);
    }

    void push_back(const T& value) { items_.push_back(value); }
    void push_back(T&& value) { items_.push_back(std::move(value)); }
    template <class... Args>
    T& emplace_back(Args&&... args) {
        return items_.emplace_back(std::forward<Args>(args)...);
    }
    void pop_back() { items_.pop_back(); }
    template <class It>
    iterator insert(const_iterator at, It first, It last) {
        return items_.insert(at, first, last);
    }
    iterator insert(const_iterator at, const T& value) { return items_.insert(at, value); }
    iterator erase(const_iterator at) { return items_.erase(at); }
    iterator erase(const_iterator first, const_iterator last) { return items_.erase(first, last); }

    friend bool operator==(const Vector& a, const Vector& b) { return a.items_ == b.items_; }
    friend bool operator!=(const Vector& a, const Vector& b) { return a.items_ != b.items_; }
    friend bool operator<(const Vector& a, const Vector& b) { return a.items_ < b.items_; }

  private:
    static std::size_t unsigned_size(Index n) {
        assert(n >= 0);
        return static_cast<std::size_t>(n);
    }
    std::size_t checked(Index k) const {
        assert(k >= 0 && k < size());
        return static_cast<std::size_t>(k);
    }

    Items items_;
};

template <class T>
struct AlignedAllocator {
    using value_type = T;
    static constexpr std::size_t kAlign = 64;

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}

    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{kAlign}));
    }
    // Growing an array leaves the new elements uninitialized.
    template <class U>
    void construct(U* p) {
        ::new (static_cast<void*>(p)) U;
    }
    template <class U, class... Args>
    void construct(U* p, Args&&... args) {
        ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
    }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{kAlign}); }

    template <class U>
    bool operator==(const AlignedAllocator<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const AlignedAllocator<U>&) const {
        return false;
    }
};

// An array of numbers for vector loops, aligned to a cache line.
template <class T>
using Array = Vector<T, AlignedAllocator<T>>;

// Reserves memory for n elements. If the capacity has to grow, it becomes at least twice the size.
template <class Container>
void enlarge(Container& c, Index n) {
    if (n > c.capacity()) c.reserve(std::max(n, 2 * c.size()));
}

}  // namespace marginwise
