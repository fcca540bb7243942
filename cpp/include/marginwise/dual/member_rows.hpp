// The features of all members as rows, in addition to their tiles.
//
// With several classes, a problem that recomputes its kernel rows needs the features of the few
// members that it holds. A tile interleaves the features of its members, so reading one member
// reads all of its neighbours; rows avoid that.
#pragma once

#include <numeric>

#include "marginwise/dual/members.hpp"

namespace marginwise {

template <class T>
class MemberRows {
  public:
    MemberRows(const Members<T>& members, ThreadPool& workers)
        : d_(members.features()), blocks_(tiles_for(members.size())) {
        workers.run(blocks_.size(), [&](Index t, Index) {
            Vector<Index> at(std::min(kLanes, members.size() - t * kLanes));
            std::iota(at.begin(), at.end(), t * kLanes);
            members.extract(at.data(), at.size(), blocks_[t]);
        });
    }

    // Bytes that the rows of these members would take, estimated from the first tile.
    static Index bytes(const Members<T>& members) {
        Vector<Index> first(std::min(kLanes, members.size()));
        std::iota(first.begin(), first.end(), 0);
        Rows<T> some;
        members.extract(first.data(), first.size(), some);
        const Index each = Index(sizeof(T) + sizeof(std::uint32_t));
        return members.size() / std::max<Index>(some.n, 1) * some.value.size() * each;
    }

    // The block that contains member s, as row s % kLanes.
    const Rows<T>& block_of(Index s) const { return blocks_[s / kLanes]; }

    // Members member[places[0]], member[places[1]], ... as a block of lists.
    void collect(const Vector<std::int32_t>& member, const Vector<Index>& places,
                 Rows<T>& rows) const {
        rows.start(d_);
        for (const Index k : places) rows.add_row(block_of(member[k]), member[k] % kLanes);
    }

  private:
    Index d_;
    Vector<Rows<T>> blocks_;  // of lists, one per tile
};

}  // namespace marginwise
