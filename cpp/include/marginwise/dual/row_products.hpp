// Kernel rows of a problem, several at a time, by products of examples with tiles of members.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::multiply(Index c, const Vector<Index>& places, const Vector<float*>& rows,
                       Index first) {
    const Index n = places.size();
    if (n == 0) return;
    Subproblem& sub = subproblems[c];
    if (known) {
        for (Index r = 0; r < n; ++r) recall(sub.member[places[r]], sub.member, rows[r]);
        return;
    }
    Workspace& work = work_[c];
    Vector<Index> at;
    for (const Index k : places) at.push_back(sub.member[k]);
    members.extract(at.data(), n, work.extracted);
    if (!members.sparse()) work.extracted.choose_form();
    kernel.values_over(work.extracted, members, first, tiles_for(size()), scratches(c), workers(),
                       [&](Index t, const float* k, Index stride) {
                           for (Index r = 0; r < n; ++r)
                               place_tile(sub, t, k + r * stride, rows[r]);
                       });
    sub.stats.kernel_evaluations += n * (size() - first * kLanes);
}

template <class T>
void Dual<T>::recall(Index s, const Vector<std::int32_t>& at, float* out) const {
    const float* row = known->row(members.ids[s]);  // see single()
    for (Index n = 0; n < at.size(); ++n) out[n] = row[members.ids[at[n]]];
}

// Writes the values of the members of tile t to their places in a row. Where there is one problem,
// places are positions.
template <class T>
void Dual<T>::place_tile(const Subproblem& sub, Index t, const float* values, float* row) const {
    const Index begin = t * kLanes, used = std::min(kLanes, size() - begin);
    if (aligned() && sub.P.closed == 0) {
        std::copy_n(values, used, row + begin);
        return;
    }
    for (Index lane = 0; lane < used; ++lane)
        if (const Index l = sub.place[begin + lane]; l != kNone) row[l] = values[lane];
}

}  // namespace marginwise
