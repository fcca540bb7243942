// Kernel rows of a problem, several at a time, by products of examples with tiles of members.
#pragma once

#include "marginwise/dual/dual.hpp"

namespace marginwise {

template <class T>
void Dual<T>::fetch(Index c, const Vector<Index>& places) {
    Subproblem& sub = subproblems[c];
    for (const Index k : places) sub.rows.take(k, sub.P.size);
    Vector<float*> values;
    for (const Index k : places) values.push_back(sub.rows.peek(k)->values);
    has_own_features(c) ? multiply_own(c, places, values, 0) : multiply(c, places, values);
    sub.finish_rows(places);
}

template <class T>
bool Dual<T>::fetch_all(Index c) {
    constexpr Index kBlock = 2 * kLanes;  // rows that are multiplied together
    Subproblem& sub = subproblems[c];
    const Index n = sub.P.size;
    const bool own = has_own_features(c);
    if ((!own && !aligned()) || known || sub.rows.room_for(n) < n) return false;
    Vector<Index> all(n);
    Vector<float*> rows;
    std::iota(all.begin(), all.end(), 0);
    for (const Index k : all) sub.rows.take(k, n);
    for (const Index k : all) rows.push_back(sub.rows.peek(k)->values);
    for (Index first = 0; first < n; first += kBlock) {
        const Index end = std::min(first + kBlock, n);
        const Vector<Index> places(all.begin() + first, all.begin() + end);
        const Vector<float*> those(rows.begin() + first, rows.begin() + end);
        own ? multiply_own(c, places, those, first) : multiply(c, places, those, first / kLanes);
        // K(k, l) = K(l, k): the rows of later places get the columns of this block.
        const Index whole = std::max(end, n / kLanes * kLanes);
        for (Index k = first; k < end; k += kLanes)
            for (Index l = end; l < whole; l += kLanes) table().mirror(rows.data(), k, l);
        for (Index l = whole; l < n; ++l)
            for (Index k = first; k < end; ++k) rows[l][k] = rows[k][l];
    }
    sub.finish_rows(all);
    return true;
}

template <class T>
void Dual<T>::keep_member_rows(ThreadPool& workers) {
    bool needed = false;
    for (const Subproblem& sub : subproblems) needed = needed || sub.borrows;
    if (!needed || members.sparse() || kernel.is_callable()) return;
    if (2 * MemberRows<T>::bytes(members) > subproblems[0].rows.most()) return;
    try {
        member_rows_ = std::make_shared<MemberRows<T>>(members, workers);
    } catch (const std::bad_alloc&) {
        member_rows_.reset();
    }
}

template <class T>
const Rows<T>& Dual<T>::own_block(Index c, const Vector<Index>& places) {
    Rows<T>& block = work_[c].extracted;
    if (member_rows_)
        member_rows_->collect(subproblems[c].member, places, block);
    else
        own_[c].extract(places, block);
    if (!members.sparse()) block.choose_form();
    return block;
}

template <class T>
void Dual<T>::multiply_own(Index c, const Vector<Index>& places, const Vector<float*>& rows,
                           Index from) {
    const Rows<T>& block = own_block(c, places);
    own_[c].multiply(kernel, block, from, scratches(c), workers(),
                     [&](Index t, const float* k, Index stride) {
                         for (Index r = 0; r < block.n; ++r)
                             std::copy_n(k + r * stride, kLanes, rows[r] + t * kLanes);
                     });
    Subproblem& sub = subproblems[c];
    sub.stats.kernel_evaluations += block.n * (sub.P.size - from / kLanes * kLanes);
}

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

// Writes the values of the members of tile t to their places in a row. If there is one problem,
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
