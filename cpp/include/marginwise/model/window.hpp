// A window: examples judged by the same model, and the violators among them, which are admitted to
// the problems together.
#pragma once

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/model/block.hpp"

namespace marginwise {

struct Window {
    // An example that violates in a problem: its number in the window and its gradient.
    struct Violator {
        Index n;
        double g;
    };

    Vector<std::int64_t> source;         // row of the batch, by example
    Vector<Vector<Violator>> violators;  // by problem, in the order of the examples
    bool full = false;

    void clear() { *this = Window(); }

    // Adds the examples of a block; returns the number of the first.
    Index add(const Vector<std::int64_t>& rows, Index problems) {
        const Index first = source.size();
        source.insert(source.end(), rows.begin(), rows.end());
        violators.resize(problems);
        return first;
    }
};

// Caches the kernel values of the violators of problem c with its places, as far as keeps_ahead()
// allows: those of the violators from number `from` on, which are rows of the block. Row 0 of the
// block is example `first` of the window.
template <class T>
void keep_rows(Dual<T>& D, const Window& window, Index c, Index from, const Block<T>& block,
               Index first) {
    constexpr Index kFew = 4;  // least number of rows worth a thread
    Subproblem& sub = D.subproblems[c];
    const Vector<Window::Violator>& noted = window.violators[c];
    const Index n = sub.P.size;
    for (Index v = from; v < noted.size(); ++v)
        if (D.keeps_ahead(c, v + 1)) sub.rows.take(n + v, std::max<Index>(n, 1));
    D.workers().run_parts(noted.size() - from, kFew, [&](Index begin, Index end, Index) {
        for (Index v = from + begin; v < from + end; ++v) {
            RowCache::Row* held = sub.rows.peek(n + v);
            if (!held) continue;
            table().collect(held->values, block.row(noted[v].n - first), sub.member.data(), n);
            held->length = n;
        }
    });
}

// Opens places with alpha = 0 for the violators of a window, and completes their kernel rows. Cost:
// the square of their number in kernel values.
template <class T>
class Admission {
  public:
    Admission(Dual<T>& D, const Batch& batch, const FeatureScaling& scaling, const Window& window)
        : D_(D), window_(window), number_(window.source.size(), kNone) {
        for (const auto& violators : window.violators)
            for (const auto& [n, g] : violators) number_[n] = 0;
        for (Index n = 0; n < number_.size(); ++n) {
            if (number_[n] == kNone) continue;
            number_[n] = member_.size();
            member_.push_back(D.members.find(batch.ids[window.source[n]]));
            if (member_.back() == kNone) fresh_.push_back(window.source[n]);
        }
        append_fresh(batch, scaling);
        for (Index c = 0; c < D.problems(); ++c) open_places(c);
    }

    void complete_rows(ThreadPool& workers) {
        constexpr Index kBlock = 256;
        const Index n = member_.size(), width = padded(n);
        const Members<T> those = D_.members.some(member_, workers);
        for (Subproblem& sub : D_.subproblems)
            if (sub.rows.held() > 0) sub.rows.make_room(sub.P.size, workers);
        Vector<Scratch<T>> scratches(workers.threads());
        Vector<Index> next(D_.problems(), 0);
        Array<float> values;
        const Vector<Rows<T>> blocks = extract(those, kBlock, workers);
        for (Index first = 0; first < n; first += kBlock) {
            const Rows<T>& rows = blocks[first / kBlock];
            const Index count = rows.n;
            values.resize(count * width);
            workers.run(tiles_for(n), [&](Index t, Index worker) {
                D_.kernel.values(rows, 0, count, those.tile(t), scratches[worker],
                                 &values[t * kLanes], width, those.tile_after(t));
            });
            D_.stats.kernel_evaluations += count * n;
            workers.run(D_.problems(), [&](Index c, Index) {
                const Index begin = next[c], all = window_.violators[c].size();
                Index& end = next[c];
                while (end < all && number(c, end) < first + count) ++end;
                complete_rows(c, begin, end, {values.data(), first, width});
            });
        }
    }

  private:
    // Kernel values of the violators from number `first` on (one row each) with all violators.
    struct Values {
        const float* data;
        Index first, width;

        const float* row(Index number) const { return data + (number - first) * width; }
    };

    // All these members, in blocks of `size`.
    static Vector<Rows<T>> extract(const Members<T>& those, Index size, ThreadPool& workers) {
        Vector<Rows<T>> blocks((those.size() + size - 1) / size);
        workers.run(blocks.size(), [&](Index b, Index) {
            Vector<Index> at(std::min(size, those.size() - b * size));
            std::iota(at.begin(), at.end(), b * size);
            those.extract(at.data(), at.size(), blocks[b]);
            if (!those.sparse()) blocks[b].choose_form();
        });
        return blocks;
    }

    // Makes members of the violators that are not members yet.
    void append_fresh(const Batch& batch, const FeatureScaling& scaling) {
        Rows<T> rows;
        rows.read(batch.X, fresh_.data(), fresh_.size(), scaling);
        const Vector<double> diagonal = D_.diagonals_of(rows);
        Index r = 0;
        for (Index& member : member_) {
            if (member != kNone) continue;
            member = D_.append_alone(rows, r, batch.example(fresh_[r]), diagonal[r]);
            ++r;
        }
        D_.extend_problems();
    }

    void open_places(Index c) {
        first_place_.push_back(D_.problem(c).size);
        D_.subproblems[c].in_order = false;
        D_.problem(c).reserve(window_.violators[c].size());
        for (const auto& [n, g] : window_.violators[c])
            D_.open(c, member_[number_[n]], 0.0, g, Box::usual);
        D_.problem(c).find_extremes();
        D_.stats.process += window_.violators[c].size();
    }

    // Number of violator v of problem c among those of any problem.
    Index number(Index c, Index v) const { return number_[window_.violators[c][v].n]; }

    // Completes the rows of violators [begin, end) of problem c.
    void complete_rows(Index c, Index begin, Index end, const Values& values) {
        constexpr Index kFew = 4;  // least number of rows worth a thread
        Subproblem& sub = D_.subproblems[c];
        const Index first = first_place_[c], all = window_.violators[c].size();
        Vector<std::pair<RowCache::Row*, const float*>> kept;
        for (Index v = begin; v < end; ++v) {
            if (!sub.rows.peek(first + v)) continue;
            RowCache::Row& held = sub.rows.take(first + v, sub.P.size);
            if (held.length < first)  // evicted when rows became wider
                sub.rows.drop(first + v);
            else
                kept.emplace_back(&held, values.row(number(c, v)));
        }
        D_.workers().run_parts(kept.size(), kFew, [&](Index from, Index to, Index) {
            for (Index k = from; k < to; ++k) {
                const auto [held, row] = kept[k];
                for (Index v = 0; v < all; ++v) held->values[first + v] = row[number(c, v)];
                Subproblem::complete(*held, sub.P.size);
            }
        });
    }

    Dual<T>& D_;
    const Window& window_;
    Vector<Index> number_;        // by example: number among the violators of any problem, or kNone
    Vector<Index> member_;        // by violator: position among the members
    Vector<Index> first_place_;   // by problem: place of the first violator
    Vector<std::int64_t> fresh_;  // rows of the batch that are not members yet
};

}  // namespace marginwise
