// Updates the gradient of all places after coefficients have moved.
#pragma once

#include "marginwise/algo/exact/binary_problem.hpp"

namespace marginwise::exact {

class Gradient {
  public:
    // Reused from one change to the next.
    struct Memory {
        Vector<std::pair<Index, double>> touched;  // place, alpha before
        Vector<std::uint8_t> is_touched;           // by place
        Vector<Index> moved;                       // members whose alpha moved
        Vector<double> delta;                      // change of their alpha
        Vector<const double*> rows;                // kernel rows of some of them
        Array<double> change;                      // change of f, by member
    };

    Gradient(BinaryProblem& problem, Memory& memory) : B(problem), memory_(memory) { discard(); }

    // Call before alpha of place k moves.
    void touch(Index k) {
        Vector<std::uint8_t>& is_touched = memory_.is_touched;
        if (is_touched.size() < B.P.size) is_touched.resize(B.P.size + B.P.size / 4 + 1, 0);
        if (is_touched[k]) return;
        is_touched[k] = 1;
        memory_.touched.emplace_back(k, B.P.alpha[k]);
    }

    // Updates g for the touched coefficients and for a change of S.total by `total`, which moves
    // the targets of a sphere. Takes one pass over the kernel rows, in gaxpy form
    // [laskov2006, algorithm 3]. May renumber the slots of S.
    void commit(double total = 0.0);

    // Forgets which coefficients were touched.
    void discard() {
        for (const auto& [k, before] : memory_.touched) memory_.is_touched[k] = 0;
        memory_.touched.clear();
    }

    // Computes g from scratch. Cost: the kernel rows of all support vectors.
    void recompute();

  private:
    void collect_moves();
    void add_rows();

    BinaryProblem& B;
    Memory& memory_;
};

inline void Gradient::commit(double total) {
    collect_moves();
    if (B.S.factor.wants_compaction()) B.S.compact();
    if (memory_.moved.empty() && total == 0.0) return;
    add_rows();
    Problem& P = B.P;
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) {
            P.g[k] -= memory_.change[B.member(k)];
            P.g[k] += total * P.diagonal[k] / 2;
        }
}

inline void Gradient::collect_moves() {
    std::sort(memory_.touched.begin(), memory_.touched.end());
    memory_.moved.clear();
    memory_.delta.clear();
    for (const auto& [k, before] : memory_.touched) {
        memory_.is_touched[k] = 0;
        const double delta = B.P.alpha[k] - before;
        if (delta == 0.0) continue;
        B.rounding.add_move(k, before);
        B.refresh(k);
        memory_.moved.push_back(B.member(k));
        memory_.delta.push_back(delta);
    }
    B.rounding.follow_peak();
    memory_.touched.clear();
}

// change = sum of delta K(moved, .)
inline void Gradient::add_rows() {
    constexpr Index kColumns = 1024;  // columns per task
    const Index n = B.D.size(), tasks = (n + kColumns - 1) / kColumns;
    const Vector<Index>& moved = memory_.moved;
    Vector<const double*>& rows = memory_.rows;
    Array<double>& change = memory_.change;
    change.assign(padded(n), 0.0);
    for (Index i = 0; i < moved.size();) {
        const Index end = B.rows.gather(B.D, B.workers, moved, i, rows);
        const double* delta = memory_.delta.data() + i;
        const auto work = [&](Index task, Index) {
            const Index first = task * kColumns;
            Vector<const double*> from(rows);
            for (const double*& p : from) p += first;
            table().gaxpy(change.data() + first, from.data(), delta, from.size(),
                          std::min(kColumns, n - first));
        };
        if (tasks * rows.size() < 128)
            for (Index task = 0; task < tasks; ++task) work(task, 0);
        else
            B.workers.run(tasks, work);
        i = end;
    }
}

inline void Gradient::recompute() {
    Problem& P = B.P;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        P.g[k] = B.target(k);
        const double alpha = std::exchange(P.alpha[k], 0.0);
        touch(k);
        P.alpha[k] = alpha;
    }
    commit();
    B.S.peak = 0.0;
    B.rounding.measure();
}

}  // namespace marginwise::exact
