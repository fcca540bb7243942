// Rows of the kernel matrix over all members, in double and shared by all problems [laskov2006,
// section 5.3]. The cache is bounded in bytes and prefers rows of wanted members. A row that is not
// cached is computed at each request, with the same values.
#pragma once

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/dual/dual.hpp"

namespace marginwise {

class FullRows {
  public:
    explicit FullRows(Index cache_bytes) : cache_(cache_bytes) {}
    // A copy has the same limit and holds no rows.
    FullRows(const FullRows& other) : cache_(other.cache_), wanted_(other.wanted_) {}

    // Adds `change` (1 or -1) to the number of problems that need row s repeatedly.
    void want(Index s, Index change) {
        if (s >= wanted_.size()) wanted_.resize(s + 1, 0);
        wanted_[s] += change;
    }

    // K(s, t) for all members t. Valid until kTransient more rows have been requested.
    const double* row(Dual<double>& D, ThreadPool& workers, Index s) {
        Cache::Row* held = cache_.peek(s);
        if (!held && admits()) held = &cache_.take(s, D.size());
        if (!held) return transient(D, workers, s);
        if (held->length == D.size()) {
            ++D.stats.cache_hits;
            return held->values;
        }
        ++D.stats.cache_misses;
        held = &cache_.take(s, D.size());
        compute(D, workers, {s}, held->length, held->values, 0);
        held->length = D.size();
        return held->values;
    }

    // Provides the rows of members[first], members[first + 1], ..., as many as fit at once; returns
    // the index of the first one not provided. Rows that are not cached are computed together and
    // are valid until the next call. Cached rows do not move.
    Index gather(Dual<double>& D, ThreadPool& workers, const Vector<Index>& members, Index first,
                 Vector<const double*>& out) {
        Vector<Index> absent;
        Index end = first;
        for (; end < members.size(); ++end) {
            if (holds(D, members[end])) continue;
            if (absent.size() == kTransient) break;
            absent.push_back(members[end]);
        }
        const Index stride = padded(D.size()) + 16;
        const Index needed = absent.size() * stride;
        if (together_.size() < needed) together_.resize(needed + needed / 4);
        compute(D, workers, absent, 0, together_.data(), stride);
        D.stats.cache_misses += absent.size();
        D.stats.cache_hits += end - first - absent.size();
        out.clear();
        const double* next = together_.data();
        for (Index i = first; i < end; ++i) {
            const bool kept = holds(D, members[i]);
            out.push_back(kept ? cache_.peek(members[i])->values : next);
            if (!kept) next += stride;
        }
        return end;
    }

    // Whether row(s) need not be computed at each request: it is cached, there is room for it, or a
    // row that no problem wants can be evicted.
    bool keeps(Index s) { return cache_.peek(s) || admits(); }
    static constexpr Index kTransient = 32;

    // Uses the kernel row of the newest member to extend the cached rows of the `wanted` members.
    void append(const Dual<double>& D, const Vector<Index>& wanted, const double* values) {
        const Index s = D.size() - 1;
        for (const Index t : wanted) {
            Cache::Row* held = cache_.peek(t);
            if (!held || held->length != s) continue;
            held = &cache_.take(t, D.size());
            if (held->length != s) continue;  // rows became too wide and were dropped
            held->values[s] = values[t];
            held->length = s + 1;
        }
    }
    void keep(const Dual<double>& D, Index s, const double* values) {
        if (cache_.peek(s) || !admits()) return;
        Cache::Row& held = cache_.take(s, D.size());
        std::copy(values, values + D.size(), held.values);
        held.length = D.size();
    }

    void drop(Index s) { cache_.drop(s); }
    void compact(const Compaction& compaction) {
        wanted_.resize(std::max(wanted_.size(),
                                compaction.size() > 0 ? compaction[compaction.size() - 1] + 1 : 0),
                       0);
        compaction.apply(wanted_);
        cache_.compact(compaction);
    }

  private:
    using Cache = BasicRowCache<double>;

    bool holds(const Dual<double>& D, Index s) {
        const Cache::Row* held = cache_.peek(s);
        return held && held->length == D.size();
    }
    bool is_wanted(Index s) const { return s < wanted_.size() && wanted_[s] > 0; }

    // Whether one more row may be cached.
    bool admits() {
        if (cache_.width() == 0 || cache_.held() < cache_.room()) return true;
        for (Index tries = cache_.held(); tries > 0; --tries) {
            if (!is_wanted(cache_.oldest())) return true;
            cache_.take(cache_.oldest(), 0);  // marks it as just used
        }
        return false;
    }

    const double* transient(Dual<double>& D, ThreadPool& workers, Index s) {
        ++D.stats.cache_misses;
        Array<double>& out = transient_[next_];
        next_ = (next_ + 1) % kTransient;
        if (out.size() < padded(D.size())) out.resize(padded(D.size() + D.size() / 4));
        compute(D, workers, {s}, 0, out.data(), 0);
        return out.data();
    }

    // out[r * stride + t] = K(members[r], t) for all t >= `from`, rounded down to a tile.
    void compute(Dual<double>& D, ThreadPool& workers, const Vector<Index>& members, Index from,
                 double* out, Index stride) {
        constexpr Index kTilesPerTask = 8;
        if (members.empty()) return;
        const Index first = from / kLanes, end = tiles_for(D.size()), n = members.size();
        D.members.extract(members.data(), n, extracted_);
        scratch_.resize(workers.threads());
        const auto work = [&](Index task, Index worker) {
            const Index begin = first + task * kTilesPerTask;
            for (Index t = begin; t < std::min(begin + kTilesPerTask, end); ++t)
                D.kernel.values(extracted_, 0, n, D.members.tile(t), scratch_[worker],
                                out + t * kLanes, stride);
        };
        const Index tasks = (end - first + kTilesPerTask - 1) / kTilesPerTask;
        if (tasks < 4)
            for (Index task = 0; task < tasks; ++task) work(task, 0);
        else
            workers.run(tasks, work);
        D.stats.kernel_evaluations += n * (D.size() - from);
    }

    Cache cache_;
    Vector<Index> wanted_;
    Array<double> transient_[kTransient];
    Array<double> together_;
    Index next_ = 0;
    Rows<double> extracted_;
    Vector<Scratch<double>> scratch_;
};

}  // namespace marginwise
