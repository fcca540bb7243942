// A budget: a bound on the number of members. When it is reached, the least important members are
// evicted, and their contribution to f is projected onto the others [wang2012, section 4.2].
//
// The evicted members act as if their coefficients were fixed from then on. The remaining members
// carry these as inherited coefficients, which also shift their boxes. At the remaining members, f
// changes only by the residual of the projection.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

// The kernel matrix of some members, by slot.
template <class T>
class Gram {
  public:
    Index size() const { return ids_.size(); }
    Index member(Index slot) const { return member_[slot]; }
    const float* row(Index slot) const { return values_.data() + slot * stride_; }

    // Updates the slots to the live members of D; new members are appended. Cost: one kernel value
    // per pair of a new member and a member.
    void follow(const Dual<T>& D, Index most) {
        if (stride_ == 0) {
            stride_ = padded(most);
            values_.assign(stride_ * stride_, 0.0f);
        }
        keep_live(D);
        Vector<Index> slot(D.size(), kNone);
        for (Index k = 0; k < size(); ++k) slot[member_[k]] = k;
        Vector<Index> fresh;
        for (Index s = 0; s < D.size(); ++s) {
            if (D.holders[s] == 0 || slot[s] != kNone) continue;
            slot[s] = size();
            ids_.push_back(D.members.ids[s]);
            member_.push_back(s);
            fresh.push_back(s);
        }
        for (Index first = 0; first < fresh.size(); first += kLanes)
            compute(D, slot, fresh.data() + first, std::min(kLanes, fresh.size() - first));
    }

  private:
    // Slots are in the order of members, so that a copy of the model sums in the same order. A
    // member that was evicted and added again meanwhile comes after the others and counts as new.
    void keep_live(const Dual<T>& D) {
        Vector<std::uint8_t> stays(size(), 0);
        for (Index next = D.size(), k = size() - 1; k >= 0; --k) {
            const Index s = D.members.find(ids_[k]);
            stays[k] = s != kNone && s < next;
            if (stays[k]) next = s;
        }
        Compaction kept;
        for (Index k = 0; k < size(); ++k)
            if (stays[k]) kept.add(k);
        kept.apply(ids_);
        for (Index k = 0; k < kept.size(); ++k) {
            float* to = values_.data() + k * stride_;
            if (kept[k] != k) std::copy_n(row(kept[k]), stride_, to);
            kept.apply(to, stride_);
        }
        member_.clear();
        for (const std::int64_t id : ids_) member_.push_back(D.members.find(id));
    }

    void compute(const Dual<T>& D, const Vector<Index>& slot, const Index* fresh, Index n) {
        Rows<T> rows;
        D.members.extract(fresh, n, rows);
        if (!D.members.sparse()) rows.choose_form();
        D.kernel.values_over(rows, D.members, 0, tiles_for(D.size()), scratch_,
                             [&](Index t, const float* k, Index stride) {
                                 const Index first = t * kLanes;
                                 for (Index r = 0; r < n; ++r)
                                     for (Index l = 0; l < std::min(kLanes, D.size() - first); ++l)
                                         set(slot[fresh[r]], slot[first + l], k[r * stride + l]);
                             });
    }
    void set(Index a, Index b, float value) {
        if (b == kNone) return;  // the member is dead
        values_[a * stride_ + b] = values_[b * stride_ + a] = value;
    }

    Index stride_ = 0;
    Array<float> values_;
    Vector<std::int64_t> ids_;
    Vector<Index> member_;  // position of the member, by slot
    Scratch<T> scratch_;
};

template <class T>
class Budget {
  public:
    // Least violation of the margin for an example to replace a member.
    static constexpr double kWorth = 0.35;

    // `most`: the maximal number of members; 0: no limit.
    explicit Budget(Index most) : most_(most) {}
    Budget(const Budget& other) : most_(other.most_) {}  // a copy recomputes the kernel values

    bool limited() const { return most_ > 0; }
    bool reached(const Dual<T>& D) const { return limited() && D.size() - D.dead >= most_; }

    // The cost of an example with K(x, x) = k_xx that becomes a member: the given cost, up to a
    // bound that decreases with the number of evicted members. It limits the contribution of each
    // member: evicted members are not corrected any more, so the contributions of wrong labels can
    // only average out over many members. Even with a large budget, kMany evictions halve it.
    double cost(const Dual<T>& D, double given, double k_xx) const {
        if (!limited() || D.stats.projected == 0) return given;
        const double many = static_cast<double>(std::min(most_, kMany));
        const double share = many / (many + static_cast<double>(D.stats.projected));
        return std::min(given, kMostContributed * share / std::max(k_xx, simd::kLeastCurvature));
    }

    // Evicts some members from all problems. The caller updates the extremes.
    void make_room(Dual<T>& D) {
        gram_.follow(D, most_);
        choose_leaving(D);
        for (Index c = 0; c < D.problems(); ++c) project(D, c);
        for (Index c = 0; c < D.problems(); ++c) drop(D, c);
        D.stats.projected += std::count(leaves_.begin(), leaves_.end(), 1);
    }

  private:
    static constexpr Index kMany = 1000;          // evictions that halve the bound on C, at most
    static constexpr Index kShare = 32;           // one in so many members is evicted at a time
    static constexpr Index kCandidates = 4;       // candidates per eviction
    static constexpr double kPrecision = 1e-3;    // relative residual of the projection
    static constexpr Index kMostIterations = 20;  // limit for the projection
    static constexpr double kMostContributed =
        3;  // bound on the contribution of x to f(x) when evictions begin

    // Among the members with the smallest coefficients, chooses those with the smallest residual
    // after projection of their contribution onto the nearest other member.
    void choose_leaving(const Dual<T>& D) {
        const Index n = gram_.size(), count = std::max<Index>(n / kShare, 1);
        Vector<std::pair<double, Index>> order;
        for (Index k = 0; k < n; ++k) {
            double sum = 0;
            for (const Subproblem& sub : D.subproblems) {
                const double weight = sub.weight[gram_.member(k)];
                sum += weight * weight;
            }
            order.emplace_back(sum, k);
        }
        const Index candidates = std::min(kCandidates * count, n);
        std::partial_sort(order.begin(), order.begin() + candidates, order.end());
        order.resize(candidates);
        for (auto& [remains, k] : order)
            if (remains > 0) remains *= distance(k);
        std::partial_sort(order.begin(), order.begin() + count, order.end());
        leaves_.assign(n, 0);
        for (Index k = 0; k < count; ++k) leaves_[order[k].second] = 1;
    }
    // The squared distance in feature space from a member to the nearest line through 0 and another
    // member.
    double distance(Index k) const {
        const float* row = gram_.row(k);
        double most = 0;
        for (Index l = 0; l < gram_.size(); ++l) {
            const double own = static_cast<double>(gram_.row(l)[l]), with = double{row[l]};
            if (l != k && own > 0) most = std::max(most, with * with / own);
        }
        return std::max(static_cast<double>(row[k]) - most, 0.0);
    }

    // Solves K x = b by conjugate gradients, where K is the kernel matrix of the remaining members
    // and b the contribution of the evicted members to f at them. The remaining members inherit x;
    // the residual is added to g.
    void project(Dual<T>& D, Index c) {
        const Index n = gram_.size();
        const Array<double>& weight = D.subproblems[c].weight;
        Array<double> leaving(padded(n), 0.0), x(padded(n), 0.0), residual, direction;
        double contributed = 0;
        for (Index k = 0; k < n; ++k) {
            if (leaves_[k]) leaving[k] = weight[gram_.member(k)];
            contributed += leaving[k] * leaving[k];
        }
        if (contributed == 0.0) return;
        direction = residual = times(leaving);
        const double most = kPrecision * kPrecision * squared(residual);
        double before = squared(residual);
        for (Index step = 0; step < kMostIterations && before > most; ++step) {
            const Array<double> image = times(direction);
            const double curvature = product(direction, image);
            if (!(curvature > 0)) break;  // the kernel matrix is singular up to rounding
            const double length = before / curvature;
            for (Index k = 0; k < n; ++k) x[k] += length * direction[k];
            for (Index k = 0; k < n; ++k) residual[k] -= length * image[k];
            const double now = squared(residual);
            for (Index k = 0; k < n; ++k) direction[k] = residual[k] + now / before * direction[k];
            before = now;
        }
        inherit(D, c, x, residual);
        ++D.stats.projections;
    }

    void inherit(Dual<T>& D, Index c, const Array<double>& x, const Array<double>& residual) {
        Subproblem& sub = D.subproblems[c];
        Vector<Index> opened;
        for (Index k = 0; k < gram_.size(); ++k) {
            if (leaves_[k]) continue;
            const Index s = gram_.member(k);
            if (sub.place[s] == kNone) {
                D.open(c, s, 0.0, 0.0, Box::usual);
                opened.push_back(k);
            } else {
                sub.P.g[sub.place[s]] += residual[k];
            }
            sub.P.inherit(sub.place[s], x[k]);
            D.weigh(c, sub.place[s]);
        }
        if (opened.empty()) return;
        Array<double> stay(padded(gram_.size()), 0.0);
        for (Index k = 0; k < gram_.size(); ++k)
            if (!leaves_[k]) stay[k] = sub.weight[gram_.member(k)];
        for (const Index k : opened) {
            const Index place = sub.place[gram_.member(k)];
            sub.P.g[place] = sub.P.y(place) - table().dot(stay.data(), gram_.row(k), stay.size());
        }
    }

    void drop(Dual<T>& D, Index c) {
        Subproblem& sub = D.subproblems[c];
        for (Index k = 0; k < gram_.size(); ++k) {
            const Index place = leaves_[k] ? sub.place[gram_.member(k)] : kNone;
            if (place == kNone) continue;
            sub.P.alpha[place] = 0.0;
            D.weigh(c, place);
            D.close(c, place);
        }
    }

    // K v at the remaining members, 0 elsewhere.
    Array<double> times(const Array<double>& v) const {
        Array<double> out(v.size(), 0.0);
        for (Index k = 0; k < gram_.size(); ++k)
            if (!leaves_[k]) out[k] = table().dot(v.data(), gram_.row(k), v.size());
        return out;
    }
    static double product(const Array<double>& a, const Array<double>& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    }
    static double squared(const Array<double>& a) { return product(a, a); }

    Index most_;
    Gram<T> gram_;
    Vector<std::uint8_t> leaves_;  // whether the member is evicted, by slot
};

}  // namespace marginwise
