// A window: examples that are judged by one and the same model, and those among them that violate,
// which are admitted to the problems together.
#pragma once

#include "marginwise/base/thread_pool.hpp"
#include "marginwise/model/block.hpp"

namespace marginwise {

struct Window {
    // An example that violates in a problem: its number in the window, and its gradient.
    struct Violator {
        Index n;
        double g;
    };

    Vector<std::int64_t> source;         // row of the batch, of each example
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

// Notes that example n of a window violates in problem c, with gradient g. Its kernel values with
// the places, which `row` has by member, are kept as far as rows are kept ahead.
template <class T>
void note_violator(Dual<T>& D, Window& window, Index c, Window::Violator violator,
                   const float* row) {
    Subproblem& sub = D.subproblems[c];
    Vector<Window::Violator>& noted = window.violators[c];
    const Index k = sub.P.size + noted.size();
    noted.push_back(violator);
    if (!D.keeps_ahead(c, noted.size())) return;
    RowCache::Row& held = sub.rows.take(k, std::max<Index>(sub.P.size, 1));
    table().collect(held.values, row, sub.member.data(), sub.P.size);
    held.length = sub.P.size;
}

// Gives the violators of a window places with alpha = 0, and completes their kernel rows. Cost: the
// square of their number in kernel values.
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
        const Members<T> those = D_.members.some(member_);
        Vector<Scratch<T>> scratches(workers.threads());
        Vector<Index> next(D_.problems(), 0);
        Array<float> values;
        Rows<T> rows;
        for (Index first = 0; first < n; first += kBlock) {
            const Index count = std::min(kBlock, n - first);
            Vector<Index> at(count);
            std::iota(at.begin(), at.end(), first);
            those.extract(at.data(), count, rows);
            if (!those.sparse()) rows.choose_form();
            values.resize(count * width);
            workers.run(tiles_for(n), [&](Index t, Index worker) {
                D_.kernel.values(rows, 0, count, those.tile(t), scratches[worker],
                                 &values[t * kLanes], width, those.tile_after(t));
            });
            D_.stats.kernel_evaluations += count * n;
            workers.run(D_.problems(), [&](Index c, Index) {
                for (Index& v = next[c]; v < window_.violators[c].size(); ++v) {
                    const Index row = number_[window_.violators[c][v].n] - first;
                    if (row >= count) return;
                    complete_row(c, v, &values[row * width]);
                }
            });
        }
    }

  private:
    // Makes the violators members that are none yet.
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

    // `values`: kernel values of violator v of problem c with all violators.
    void complete_row(Index c, Index v, const float* values) {
        Subproblem& sub = D_.subproblems[c];
        const Index first = first_place_[c];
        if (!sub.rows.peek(first + v)) return;
        RowCache::Row& held = sub.rows.take(first + v, sub.P.size);
        if (held.length < first) {  // wider rows left no room for this one
            sub.rows.drop(first + v);
            return;
        }
        float* to = held.values + first;
        for (const auto& [n, g] : window_.violators[c]) *to++ = values[number_[n]];
        Subproblem::complete(held, sub.P.size);
    }

    Dual<T>& D_;
    const Window& window_;
    Vector<Index> number_;        // of each example among the violators of any problem, or kNone
    Vector<Index> member_;        // position of each violator
    Vector<Index> first_place_;   // of the violators, by problem
    Vector<std::int64_t> fresh_;  // rows of the batch that are no members yet
};

}  // namespace marginwise
