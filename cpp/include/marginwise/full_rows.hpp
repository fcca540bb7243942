// Rows of the kernel matrix over all members, in double and shared by all problems [laskov2006,
// section 5.3]. They are kept within a bound of bytes, those of members that are wanted first; a
// row that is not kept is computed whenever it is asked for, with the same values.
#pragma once

#include "marginwise/dual.hpp"
#include "marginwise/threads.hpp"

namespace marginwise {

class FullRows {
  public:
    explicit FullRows(Index cache_bytes) : cache_(cache_bytes) {}

    // Counts that one more or one less of the problems will ask for row s again and again.
    void want(Index s, Index change) {
        if (s >= count(wanted_)) wanted_.resize(usize(s + 1), 0);
        wanted_[usize(s)] += change;
    }

    // K(s, t) for all members t. Good until the next call but for `kTransient` of them.
    const double* row(Dual<double>& D, Crew& crew, Index s) {
        Cache::Row* held = cache_.peek(s);
        if (!held && admits(s)) held = &cache_.take(s, D.size());
        if (!held) return transient(D, crew, s);
        if (held->length == D.size()) {
            ++D.stats.cache_hits;
            return held->values;
        }
        ++D.stats.cache_misses;
        held = &cache_.take(s, D.size());
        compute(D, crew, s, held->length, held->values);
        held->length = D.size();
        return held->values;
    }

    // The same without keeping it, where it is not kept already: rows that are kept stay where they
    // are.
    const double* look(Dual<double>& D, Crew& crew, Index s) {
        const Cache::Row* held = cache_.peek(s);
        if (!held || held->length < D.size()) return transient(D, crew, s);
        ++D.stats.cache_hits;
        return held->values;
    }
    bool holds(const Dual<double>& D, Index s) {
        const Cache::Row* held = cache_.peek(s);
        return held && held->length == D.size();
    }
    static constexpr Index kTransient = 32;

    // Takes over the row of the newest member, which lengthens the rows of the members wanted.
    void append(const Dual<double>& D, const std::vector<Index>& wanted, const double* values) {
        const Index s = D.size() - 1;
        for (const Index t : wanted) {
            Cache::Row* held = cache_.peek(t);
            if (!held || held->length != s) continue;
            held = &cache_.take(t, D.size());
            if (held->length != s) continue;  // rows became too wide to be kept
            held->values[s] = values[t];
            held->length = s + 1;
        }
    }
    void keep(const Dual<double>& D, Index s, const double* values) {
        if (cache_.peek(s) || !admits(s)) return;
        Cache::Row& held = cache_.take(s, D.size());
        std::copy(values, values + D.size(), held.values);
        held.length = D.size();
    }

    void drop(Index s) { cache_.drop(s); }
    void compact(const Keep& keep) {
        wanted_.resize(
            usize(std::max(count(wanted_), keep.size() > 0 ? keep[keep.size() - 1] + 1 : 0)), 0);
        keep.close_up(wanted_);
        cache_.compact(keep);
    }

  private:
    using Cache = BasicRowCache<double>;

    bool is_wanted(Index s) const { return s < count(wanted_) && wanted_[usize(s)] > 0; }

    // Whether row s may be kept: there is room, or a row that nobody wants makes some.
    bool admits(Index) {
        if (cache_.width() == 0 || cache_.held() < cache_.room()) return true;
        for (Index tries = cache_.held(); tries > 0; --tries) {
            if (!is_wanted(cache_.oldest())) return true;
            cache_.take(cache_.oldest(), 0);  // the newest now
        }
        return false;
    }

    const double* transient(Dual<double>& D, Crew& crew, Index s) {
        ++D.stats.cache_misses;
        Array<double>& out = transient_[usize(next_)];
        next_ = (next_ + 1) % kTransient;
        if (count(out) < padded(D.size())) out.resize(usize(padded(D.size() + D.size() / 4)));
        compute(D, crew, s, 0, out.data());
        return out.data();
    }

    // out[t] = K(s, t) for members t from `from` (rounded down to a tile) on.
    void compute(Dual<double>& D, Crew& crew, Index s, Index from, double* out) {
        constexpr Index kTilesATask = 8;
        const Index first = from / kLanes, end = tiles_for(D.size());
        D.members.extract(s, extracted_);
        scratch_.resize(usize(crew.threads()));
        const auto work = [&](Index task, Index worker) {
            const Index begin = first + task * kTilesATask;
            for (Index t = begin; t < std::min(begin + kTilesATask, end); ++t)
                D.kernel.values(extracted_, 0, 1, D.members.tile(t), scratch_[usize(worker)],
                                out + t * kLanes, kLanes);
        };
        const Index tasks = (end - first + kTilesATask - 1) / kTilesATask;
        if (tasks < 4)
            for (Index task = 0; task < tasks; ++task) work(task, 0);
        else
            crew.run(tasks, work);
        D.stats.kernel_evaluations += D.size() - from;
    }

    Cache cache_;
    std::vector<Index> wanted_;
    Array<double> transient_[kTransient];
    Index next_ = 0;
    Rows<double> extracted_;
    std::vector<Scratch<double>> scratch_;
};

}  // namespace marginwise
