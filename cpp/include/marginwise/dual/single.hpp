// One problem of a dual taken out of it, and put back.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
Dual<T> Dual<T>::single(Index c) {
    Subproblem& sub = subproblems[c];
    ThreadPool caller(1);
    catch_up(c, caller);
    compact_places(c);
    Dual alone(Members<T>(members.features(), members.sparse()), kernel, 1, 0);
    Subproblem& its = alone.subproblems[0];
    Rows<T> row;
    Vector<std::int32_t> held = sub.member;
    for (const Sleepers& sleepers : sub.asleep)
        held.insert(held.end(), sleepers.member.begin(), sleepers.member.end());
    for (const std::int32_t s : held) {
        members.extract(Index(s), row);
        const std::int32_t positive = sign(c, label[s]) > 0 ? 1 : 0;
        const Index k = alone.append(row, 0, {members.ids[s], positive, cost[s]}, diagonal[s]);
        if (k < sub.P.size) {
            its.member.push_back(static_cast<std::int32_t>(k));
            its.place[k] = k;
        }
        its.weight[k] = sub.weight[s];
        alone.holders[k] = 1;
    }
    alone.dead = 0;
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
        const Index s = members.find(alone.members.ids[its.member[k]]);
        its.member[k] = static_cast<std::int32_t>(s);
        sub.place[s] = k;
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
