// One problem of a dual taken out of it, and put back.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
Dual<T> Dual<T>::single(Index c) {
    Subproblem& sub = subproblems[c];
    compact_places(c);
    Dual alone(Members<T>(members.features(), members.sparse()), kernel, 1, 0);
    Rows<T> row;
    Vector<float> unused(sub.P.size);
    for (Index k = 0; k < sub.P.size; ++k) {
        const Index s = sub.member[k];
        members.extract(Index(s), row);
        const std::int32_t positive = sub.P.y(k) > 0 ? 1 : 0;
        alone.append(row, 0, {members.ids[s], positive, cost[s]}, unused.data());
        alone.subproblems[0].member.push_back(static_cast<std::int32_t>(k));
        alone.subproblems[0].place[k] = k;
        alone.subproblems[0].weight[k] = sub.P.alpha[k];
        alone.holders[k] = 1;
    }
    alone.dead = 0;
    std::swap(alone.subproblems[0].P, sub.P);
    std::swap(alone.subproblems[0].rows, sub.rows);
    return alone;
}

template <class T>
void Dual<T>::take_back(Index c, Dual alone) {
    Subproblem& sub = subproblems[c];
    std::swap(alone.subproblems[0].P, sub.P);
    std::swap(alone.subproblems[0].rows, sub.rows);
    for (Index k = 0; k < sub.P.size; ++k) weigh(c, k);
    stats.add(alone.stats);
}

}  // namespace marginwise
