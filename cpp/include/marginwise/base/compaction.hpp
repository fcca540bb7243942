// The compaction of an array: which places are kept, and where they move.
#pragma once

#include <algorithm>
#include <cstring>

#include "marginwise/base/types.hpp"

namespace marginwise {

class Compaction {
  public:
    // Keeps place k; places are added in ascending order.
    void add(Index k) {
        if (runs_.empty() || runs_.back().from + runs_.back().length != k)
            runs_.push_back({size(), k, 0});
        ++runs_.back().length;
        kept_.push_back(k);
    }

    Index size() const { return kept_.size(); }
    Index operator[](Index k) const { return kept_[k]; }
    const Index* data() const { return kept_.data(); }
    Vector<Index>::const_iterator begin() const { return kept_.begin(); }
    Vector<Index>::const_iterator end() const { return kept_.end(); }

    // The number of kept places below n.
    Index below(Index n) const {
        return std::lower_bound(kept_.begin(), kept_.end(), n) - kept_.begin();
    }

    // Moves values[compaction[k]] to values[k] for the kept places below n, and sets the rest up to
    // n to 0. Returns the number of kept places below n.
    template <class V>
    Index apply(V* values, Index n) const {
        for (const Run& run : runs_) {
            if (run.from >= n) break;
            if (run.from == run.to) continue;
            const Index length = std::min(run.length, n - run.from);
            std::memmove(values + run.to, values + run.from, length * sizeof(V));
        }
        const Index kept = below(n);
        std::fill(values + kept, values + n, V(0));
        return kept;
    }

    template <class V, class A>
    void apply(Vector<V, A>& values) const {
        for (Index k = 0; k < size(); ++k) values[k] = values[kept_[k]];
        values.resize(kept_.size());
    }

  private:
    struct Run {
        Index to, from, length;
    };
    Vector<Index> kept_;
    Vector<Run> runs_;
};

}  // namespace marginwise
