// Kernel rows of a problem, several at a time, by products of examples with tiles of members.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::multiply(const Subproblem& sub, const Vector<Index>& places,
                       const Vector<float*>& rows, Index first) {
    const Index n = places.size();
    if (n == 0) return;
    Vector<Index> at;
    for (const Index k : places) at.push_back(sub.member[k]);
    members.extract(at.data(), n, extracted_);
    collected_.resize(n * kLanes);
    for (Index t = first; t < tiles_for(size()); ++t) {
        kernel.values(extracted_, 0, n, members.tile(t), scratch_, collected_.data(), kLanes,
                      members.tile_after(t));
        for (Index r = 0; r < n; ++r) place_tile(sub, t, &collected_[r * kLanes], rows[r]);
    }
    stats.kernel_evaluations += n * (size() - first * kLanes);
}

// Writes the values of the members of tile t to their places in a row. Where there is one problem,
// places are positions.
template <class T>
void Dual<T>::place_tile(const Subproblem& sub, Index t, const float* values, float* row) const {
    const Index begin = t * kLanes, used = std::min(kLanes, size() - begin);
    if (problems() == 1 && sub.P.closed == 0) {
        std::copy_n(values, used, row + begin);
        return;
    }
    for (Index lane = 0; lane < used; ++lane)
        if (const Index l = sub.place[begin + lane]; l != kNone) row[l] = values[lane];
}

}  // namespace marginwise
