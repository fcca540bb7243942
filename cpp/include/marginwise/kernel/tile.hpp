// A tile: the features of kLanes examples.
//
// A dense tile is feature-major, so that one feature of one example meets kLanes members in a few
// multiply-adds. A sparse tile keeps lists of nonzeros and is spread out only for the length of one
// block product, and only over the features it has: no dense copy of wide data is ever kept. Both
// give the same bits.
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
