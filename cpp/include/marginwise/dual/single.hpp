// Taking one problem out of a dual and putting it back.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
Dual<T> Dual<T>::single(Index c) {
    Subproblem& sub = subproblems[c];
    catch_up(c);
    compact_places(c);
    Vector<Index> held(sub.member.begin(), sub.member.end());
    for (const Sleepers& sleepers : sub.asleep)
        held.insert(held.end(), sleepers.member.begin(), sleepers.member.end());
    Dual alone(members.some(held), kernel, 1, 0);
    Subproblem& its = alone.subproblems[0];
    const Index n = held.size();
    its.weight.resize(padded(n), 0.0);
    its.place.assign(n, kNone);
    alone.holders.assign(n, 1);
    for (Index k = 0; k < n; ++k) {
        const Index s = held[k];
        alone.members.ids[k] = s;  // for take_back()
        alone.label.push_back(sign(c, label[s]) > 0 ? 1 : 0);
        alone.cost.push_back(cost[s]);
        alone.diagonal.push_back(diagonal[s]);
        its.weight[k] = sub.weight[s];
        if (k >= sub.P.size) continue;
        its.member.push_back(static_cast<std::int32_t>(k));
        its.set_place(k, k);
    }
    if (!sub.asleep.empty()) {
        its.asleep = std::move(sub.asleep);
        sub.asleep.clear();
        for (Index n = 0; n < its.asleep[0].member.size(); ++n)
            its.asleep[0].member[n] = static_cast<std::int32_t>(sub.P.size + n);
        its.asleep[0].counted = its.weight;
        its.in_order = false;
    }
    std::swap(alone.subproblems[0].P, sub.P);
    std::swap(alone.subproblems[0].rows, sub.rows);
    return alone;
}

template <class T>
void Dual<T>::take_back(Index c, Dual alone) {
    Subproblem &sub = subproblems[c], &its = alone.subproblems[0];
    alone.rest();
    for (Index k = 0; k < its.P.size; ++k) {
        const Index s = alone.members.ids[its.member[k]];
        its.member[k] = static_cast<std::int32_t>(s);
        sub.set_place(s, k);
    }
    std::swap(its.P, sub.P);
    std::swap(its.rows, sub.rows);
    std::swap(its.member, sub.member);
    for (Index k = 0; k < sub.P.size; ++k) weigh(c, k);
    sub.tended = 0;
    own_[c].drop();
    stats.add(alone.total_stats());
}

}  // namespace marginwise
