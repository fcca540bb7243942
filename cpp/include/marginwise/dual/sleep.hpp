// Sleep: members at a side of their box that belong to no violating pair are removed from the
// arrays that every step reads. Their gradient is updated later, by one product for all steps that
// they slept through. This is LIBSVM's shrinking, applied while learning and while finishing.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::sleep(Index c, bool idle_too) {
    Subproblem& sub = subproblems[c];
    Problem& P = sub.P;
    const simd::Extremes& e = P.extremes;
    if (!e.both() || !sleeps) return;
    Vector<Index> places;
    for (Index k = 0; k < P.size; ++k) {
        const bool rises = P.up[k] == 0, falls = P.down[k] == 0;
        if (rises == falls || (P.alpha[k] == 0.0 && !idle_too)) continue;
        if (rises ? P.g[k] < e.g_min : P.g[k] > e.g_max) places.push_back(k);
    }
    if (places.size() < kLanes || 8 * places.size() < P.size) return;
    Sleepers sleepers;
    sleepers.counted = sub.weight;
    for (const Index k : places) {
        const std::int32_t s = sub.member[k];
        sleepers.member.push_back(s);
        sleepers.g.push_back(P.g[k]);
        sub.place[s] = kNone;
        sub.rows.drop(k);
        P.alpha[k] = 0.0;
        P.close(k);
    }
    sub.asleep.push_back(std::move(sleepers));
    sub.in_order = false;
    compact_places(c);
}

// g -= sum of change K(s, .) over the members s whose weight has changed since g was last updated.
template <class T>
void Dual<T>::catch_up(Index c, Sleepers& sleepers) {
    const Subproblem& sub = subproblems[c];
    sleepers.counted.resize(sub.weight.size(), 0.0);
    Vector<Index> changed;
    for (Index s = 0; s < size(); ++s)
        if (sub.weight[s] != sleepers.counted[s]) changed.push_back(s);
    const Index n = sleepers.member.size();
    sleepers.g.resize(padded(n), 0.0);
    if (known)
        catch_up_by_known_values(c, changed, sleepers);
    else
        catch_up_by_products(c, changed, sleepers);
    sleepers.g.resize(n);
}

template <class T>
void Dual<T>::catch_up_by_known_values(Index c, const Vector<Index>& changed, Sleepers& sleepers) {
    const Subproblem& sub = subproblems[c];
    Array<float> values(sleepers.g.size(), 0.0f);
    for (const Index s : changed) {
        recall(s, sleepers.member, values.data());
        table().add(sleepers.g.data(), values.data(), sleepers.counted[s] - sub.weight[s],
                    sleepers.g.size());
    }
}

template <class T>
void Dual<T>::catch_up_by_products(Index c, const Vector<Index>& changed, Sleepers& sleepers) {
    constexpr Index kBlock = 128, kTogether = 8 * kBlock;
    Subproblem& sub = subproblems[c];
    const Index n = sleepers.member.size();
    const Members<T> those =
        members.some(Vector<Index>(sleepers.member.begin(), sleepers.member.end()), workers());
    Vector<Array<float>> buffers(workers().threads(), Array<float>(kBlock * kLanes));
    Vector<Scratch<T>>& scratch = scratches(c);
    for (Index begin = 0; begin < changed.size(); begin += kTogether) {
        const Index count = std::min(kTogether, changed.size() - begin);
        Vector<Rows<T>> blocks((count + kBlock - 1) / kBlock);
        workers().run(blocks.size(), [&](Index b, Index) {
            const Index first = begin + b * kBlock;
            members.extract(&changed[first], std::min(kBlock, changed.size() - first), blocks[b]);
            if (!members.sparse()) blocks[b].choose_form();
        });
        workers().run(tiles_for(n), [&](Index t, Index worker) {
            float* values = buffers[worker].data();
            const Index* s = &changed[begin];
            for (const Rows<T>& rows : blocks) {
                kernel.values(rows, 0, rows.n, those.tile(t), scratch[worker], values, kLanes,
                              those.tile_after(t));
                for (Index m = 0; m < rows.n; ++m, ++s)
                    table().add(&sleepers.g[t * kLanes], values + m * kLanes,
                                sleepers.counted[*s] - sub.weight[*s], kLanes);
            }
        });
    }
    sub.stats.kernel_evaluations += n * changed.size();
}

// Updates the gradient of all sleepers of problem c.
template <class T>
void Dual<T>::catch_up(Index c) {
    Subproblem& sub = subproblems[c];
    if (sub.asleep.empty()) return;
    Sleepers all;
    for (Sleepers& sleepers : sub.asleep) {
        catch_up(c, sleepers);
        all.member.insert(all.member.end(), sleepers.member.begin(), sleepers.member.end());
        all.g.insert(all.g.end(), sleepers.g.begin(), sleepers.g.end());
    }
    all.counted = sub.weight;
    sub.asleep.clear();
    sub.asleep.push_back(std::move(all));
    sub.left.insert(sub.left.end(), sub.owed.begin(), sub.owed.end());
    sub.owed.clear();
}

// Gives places again to sleepers of problem c, whose gradient must be up to date: to all of them,
// or to those that form a violating pair with an awake place. Returns whether any woke.
template <class T>
bool Dual<T>::wake(Index c, bool all) {
    Subproblem& sub = subproblems[c];
    if (sub.asleep.empty()) return false;
    Problem& P = sub.P;
    const simd::Extremes e = P.extremes;
    Sleepers& sleepers = sub.asleep.front();
    Index left = 0;
    for (Index n = 0; n < sleepers.member.size(); ++n) {
        const std::int32_t s = sleepers.member[n];
        const double g = sleepers.g[n], alpha = sub.weight[s], y = sign(c, label[s]);
        const bool rises = (y > 0) == (alpha == 0.0);
        if (!all && (rises ? g <= e.g_min : g >= e.g_max)) {
            sleepers.member[left] = s;
            sleepers.g[left++] = g;
            continue;
        }
        sub.set_place(s, P.add(alpha, g, y * cost[s], diagonal[s]));
        sub.member.push_back(s);
        own_[c].open(members, s);
    }
    const bool any = left < sleepers.member.size();
    sleepers.member.resize(left);
    sleepers.g.resize(left);
    if (left == 0) sub.asleep.clear();
    if (any) P.find_extremes();
    return any;
}

template <class T>
bool Dual<T>::stir(Index c) {
    catch_up(c);
    return wake(c, false);
}

template <class T>
void Dual<T>::rest() {
    for (Index c = 0; c < problems(); ++c) {
        catch_up(c);
        wake(c, true);
        release_closed(c);
    }
    if (problems() == 1 && !subproblems[0].in_order) {
        compact();
        put_in_order();
    }
}

// Puts the places of a single problem in the order of members. Requires that no place is closed and
// no member is dead.
template <class T>
void Dual<T>::put_in_order() {
    Subproblem& sub = subproblems[0];
    Problem ordered;
    ordered.biased = sub.P.biased;
    ordered.changes = sub.P.changes;
    ordered.unsolved = sub.P.unsolved;
    for (Index s = 0; s < size(); ++s) {
        ordered.add(sub.P, sub.place[s]);
        sub.set_place(s, s);
        sub.member[s] = static_cast<std::int32_t>(s);
    }
    ordered.find_extremes();
    sub.P = std::move(ordered);
    sub.rows.clear();
    sub.tended = 0;
    sub.in_order = true;
    own_[0].drop();
}

}  // namespace marginwise
