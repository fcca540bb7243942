// Exact duplicates: examples with the same features and the same label in a problem. The model does
// not depend on how weight is divided among them, so it is concentrated on as few as possible.
#pragma once

#include <cstring>

#include "marginwise/solve/direction.hpp"

namespace marginwise {

// Hashes and compares the features of members.
template <class T>
class FeatureKeys {
  public:
    explicit FeatureKeys(const Members<T>& members) : members_(members) {}

    std::uint64_t hash(Index s) {
        members_.extract(s, row_);
        std::uint64_t h = 14695981039346656037u;  // FNV-1a
        const auto add = [&](std::uint32_t bits) { h = (h ^ bits) * 1099511628211u; };
        for (const std::uint32_t feature : row_.index) add(feature);
        for (const T x : row_.value) add(bits_of(static_cast<float>(x)));
        return h;
    }
    bool same(Index s, Index t) {
        members_.extract(s, row_);
        members_.extract(t, other_);
        return row_.index == other_.index && row_.value == other_.value;
    }

  private:
    static std::uint32_t bits_of(float x) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &x, sizeof(bits));
        return bits;
    }

    const Members<T>& members_;
    Rows<T> row_, other_;
};

// Calls use(first, last) for each run of two or more equal elements of a sorted range.
template <class Iterator, class Equal, class F>
void each_run(Iterator begin, Iterator end, Equal equal, F use) {
    while (begin != end) {
        const Iterator last =
            std::find_if(begin, end, [&](const auto& other) { return !equal(*begin, other); });
        if (last - begin > 1) use(begin, last);
        begin = last;
    }
}

// The groups of two or more duplicates among the free places of problem c. Features are compared
// only where |x|^2 and label agree.
template <class T>
Vector<Vector<Index>> free_duplicates(const Dual<T>& D, Index c) {
    const Subproblem& sub = D.subproblems[c];
    const Problem& P = sub.P;
    FeatureKeys<T> keys(D.members);
    Vector<std::pair<double, Index>> by_norm;  // 1 + |x|^2 with the sign of the label, and place
    for (Index k = 0; k < P.size; ++k)
        if (P.free_at(k) && P.box[k] == Box::usual)
            by_norm.emplace_back(P.y(k) * (1.0 + double(D.members.norm(sub.member[k]))), k);
    std::sort(by_norm.begin(), by_norm.end());
    const auto same_first = [](const auto& a, const auto& b) { return a.first == b.first; };
    Vector<Vector<Index>> groups;
    each_run(by_norm.begin(), by_norm.end(), same_first, [&](auto begin, auto end) {
        Vector<std::pair<std::uint64_t, Index>> by_hash;
        for (auto at = begin; at != end; ++at)
            by_hash.emplace_back(keys.hash(sub.member[at->second]), at->second);
        std::sort(by_hash.begin(), by_hash.end());
        each_run(by_hash.begin(), by_hash.end(), same_first, [&](auto first, auto last) {
            Vector<Index> group;
            for (auto at = first; at != last; ++at)
                if (keys.same(sub.member[first->second], sub.member[at->second]))
                    group.push_back(at->second);
            if (group.size() > 1) groups.push_back(std::move(group));
        });
    });
    return groups;
}

// Moves weight from the last to the first of a group of duplicates until at most one of them is
// free.
template <class T>
void pool_group(Dual<T>& D, Index c, const Vector<Index>& group) {
    Problem& P = D.problem(c);
    for (Index first = 0, last = group.size() - 1; first < last;) {
        const Index to = group[first], from = group[last];
        const double room = std::abs(P.side[to] - P.alpha[to]);
        const double step = P.y(to) * std::min(room, std::abs(P.alpha[from]));
        shift(P, to, step);
        shift(P, from, -step);
        D.weigh(c, to);
        D.weigh(c, from);
        if (P.free_at(to) && P.free_at(from)) return;  // only rounding is left to move
        first += !P.free_at(to);
        last -= !P.free_at(from);
    }
}

// Concentrates the weight of duplicates in problem c on as few of them as possible. Those left
// without weight are closed if another one of the group is free, because it then determines the
// bias just as well.
template <class T>
void pool_duplicates(Dual<T>& D, Index c) {
    if (D.kernel.is_callable()) return;  // features may be mere indices of objects
    Problem& P = D.problem(c);
    const Vector<Vector<Index>> groups = free_duplicates(D, c);
    for (const Vector<Index>& group : groups) {
        pool_group(D, c, group);
        const auto is_free = [&](Index k) { return P.free_at(k); };
        if (std::none_of(group.begin(), group.end(), is_free)) continue;
        for (const Index k : group)
            if (P.alpha[k] == 0.0) D.close_place(c, k);
    }
    if (!groups.empty()) P.find_extremes();
}

}  // namespace marginwise
