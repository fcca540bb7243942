// A tile: the features of kLanes examples.
//
// A dense tile is feature-major, so that a few multiply-adds combine one feature of an example with
// all kLanes members. A sparse tile stores lists of nonzeros. It is expanded only for the duration
// of one block product, and only over the features that occur in it, so no dense copy of wide data
// is ever stored. Both give bit-identical results.
#pragma once

#include "marginwise/base/types.hpp"

namespace marginwise {

template <class T>
struct Tile {
    Array<T> dense;               // feature k of lane l at [k * kLanes + l]; or
    Vector<std::uint32_t> index;  // nonzeros, lane by lane
    Vector<T> value;
    Vector<Index> begin;  // lane l has entries [begin[l], begin[l + 1])
    Array<T> norms;
    Index used = 0;  // lanes that hold a member

    Tile(Index d, bool sparse) : norms(kLanes, T(0)) {
        if (sparse)
            begin.assign(1, 0);
        else
            dense.assign(d * kLanes, T(0));
    }
    bool sparse() const { return !begin.empty(); }
    Index bytes() const {
        return dense.size() * Index(sizeof(T)) + value.size() * Index(sizeof(T) + 4) +
               kLanes * Index(sizeof(T) + 8);
    }
};

}  // namespace marginwise
