// Which of a sequence of things stay, and how arrays over them close up.
#pragma once

#include <algorithm>
#include <cstring>

#include "marginwise/types.hpp"

namespace marginwise {

class Keep {
  public:
    // Things are added in ascending order.
    void add(Index k) {
        if (runs_.empty() || runs_.back().from + runs_.back().length != k)
            runs_.push_back({size(), k, 0});
        ++runs_.back().length;
        kept_.push_back(k);
    }

    Index size() const { return kept_.size(); }
    Index operator[](Index k) const { return kept_[k]; }
    Vector<Index>::const_iterator begin() const { return kept_.begin(); }
    Vector<Index>::const_iterator end() const { return kept_.end(); }

    // How many things below n stay.
    Index below(Index n) const {
        return std::lower_bound(kept_.begin(), kept_.end(), n) - kept_.begin();
    }

    // Moves values[keep[k]] to values[k] for all that stay of the first n; zeros follow them.
    // Returns how many there are.
    template <class V>
    Index close_up(V* values, Index n) const {
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
    void close_up(Vector<V, A>& values) const {
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
