// The features of all members as rows, beside their tiles.
//
// A problem of several classes that computes its kernel rows again needs the features of the few
// members that it holds. In tiles they stand far apart, and reading them means reading those of all
// others, too; in rows they do not.
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

    // Bytes that the rows of these members would take, by those of the first ones.
    static Index bytes(const Members<T>& members) {
        Vector<Index> first(std::min(kLanes, members.size()));
        std::iota(first.begin(), first.end(), 0);
        Rows<T> some;
        members.extract(first.data(), first.size(), some);
        const Index each = Index(sizeof(T) + sizeof(std::uint32_t));
        return members.size() / std::max<Index>(some.n, 1) * some.value.size() * each;
    }

    // The block that has member s, as its row s % kLanes.
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
