// Exact duplicates: examples with the same features and the same label in a problem. However their
// weight is divided among them, the model is the same; as few of them as possible carry it.
#pragma once

#include <cstring>
#include <unordered_map>

#include "marginwise/dual/dual.hpp"

namespace marginwise {

// The features of members, compared bit by bit.
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

// Places of problem c with weight, in groups of duplicates of two and more.
template <class T>
Vector<Vector<Index>> duplicates(const Dual<T>& D, Index c) {
    const Subproblem& sub = D.subproblems[c];
    const Problem& P = sub.P;
    FeatureKeys<T> keys(D.members);
    Vector<Vector<Index>> groups;
    std::unordered_map<std::uint64_t, Vector<Index>> alike;  // groups by hash
    for (Index k = 0; k < P.size; ++k) {
        if (P.alpha[k] == 0.0 || P.box[k] != Box::usual) continue;
        const auto holds_k = [&](Index group) {
            const Index first = groups[group][0];
            return P.y(first) == P.y(k) && keys.same(sub.member[first], sub.member[k]);
        };
        Vector<Index>& candidates = alike[keys.hash(sub.member[k])];
        const auto found = std::find_if(candidates.begin(), candidates.end(), holds_k);
        if (found != candidates.end()) {
            groups[*found].push_back(k);
            continue;
        }
        candidates.push_back(groups.size());
        groups.push_back({k});
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(),
                                [](const Vector<Index>& group) { return group.size() == 1; }),
                 groups.end());
    return groups;
}

// Moves the weight of duplicates in problem c, where several of them are not at their bound, to the
// first that have room for it. Those that are left without are closed if one of the others can move
// both ways: it then says of the bias what they did.
template <class T>
void pool_duplicates(Dual<T>& D, Index c) {
    if (D.kernel.is_callable()) return;  // features may be mere numbers of objects
    constexpr double kRounding = 1e-12;  // of the side of a box
    Problem& P = D.problem(c);
    const auto is_free = [&](Index k) { return P.up[k] == 0 && P.down[k] == 0; };
    const Vector<Vector<Index>> groups = duplicates(D, c);
    for (const Vector<Index>& group : groups) {
        if (std::count_if(group.begin(), group.end(), is_free) < 2) continue;
        double left = 0;
        bool any_free = false;
        for (const Index k : group) left += P.alpha[k];
        for (const Index k : group) {
            const double rounding = kRounding * std::abs(P.side[k]);
            if (std::abs(left) <= rounding) left = 0.0;
            P.alpha[k] = std::clamp(left, P.lo[k], P.hi[k]);
            if (std::abs(P.side[k] - P.alpha[k]) <= rounding) P.alpha[k] = P.side[k];
            left -= P.alpha[k];
            P.refresh(k);
            D.weigh(c, k);
            any_free = any_free || is_free(k);
        }
        for (const Index k : group)
            if (any_free && P.alpha[k] == 0.0) D.close_place(c, k);
    }
    if (!groups.empty()) P.find_extremes();
}

}  // namespace marginwise
