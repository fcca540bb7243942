// The exact solution after every arrival and every removal [laskov2006].
//
// Signed coefficients unify the two problems of the paper. Let f(x) = sum_j alpha_j K(x_j, x) + b.
// Each example has a target t_i: +1 or -1 for two classes; for a sphere, K(x_i, x_i) times half the
// sum of all coefficients. The conditions (2) are on h_i = t_i - f(x_i) = g_i - b:
//
//     alpha_i at lo: h_i <= 0,   between lo and hi: h_i = 0,   at hi: h_i >= 0.
//
// A change, such as learning a new example, drives coefficients along a line. The free examples S
// and the bias b respond linearly, so that h stays 0 on S, until an event: an example joins S or
// leaves it. The line is followed from event to event to its end.
//
//   paper        here                                   paper             here
//   S, E, O      Set::free, bounded, idle               K, Q              FullRows; y is in alpha
//   alpha_i      |alpha[k]|; alpha[k] has the sign y    mu                b: bias()
//   C            box [lo[k], hi[k]], from 0 to C y      g_i               -y_i h_i
//   eq. 2        Conditions                             algorithm 1       BinarySolver, Path
//   eq. 7, 9     Path::find_rates()                     eq. 10 - 14       Path::next_event()
//   eq. 15       Factor                                 lemma 1           Pivots
//   section 4.1  Path::shift_bias()                     algorithm 3       Gradient::commit()
//
// Only examples near the margin are watched along a line. At the end of each line, the whole
// gradient is updated. An example that then violates its condition is learned as if it had just
// arrived, which leads to the same solution.
//
// DEPARTS: the triangular factor of the shifted kernel matrix of S replaces the inverse of the
//          bordered matrix (15).
// DEPARTS: examples far from the margin are not watched along a line; see above.
// DEPARTS: examples that are forgotten together are removed along a single line.
// DEPARTS: an example that depends linearly on S is exchanged with one of S instead of being kept
//          out.
// DEPARTS: if a line cannot be followed, the problem is solved by pairs [fan2005] instead.
// DEPARTS: each binary problem has its own window, which may evict the oldest example instead of
//          the one of least |alpha|.
// DEPARTS: the coefficients of a sphere may add up to nu times the sum of their bounds instead of
//          1, and there is no initialisation (algorithm 2).
#pragma once

#include "marginwise/algo/exact/check_solution.hpp"
#include "marginwise/algo/exact/leave_one_out.hpp"
#include "marginwise/algo/exact/support_vectors.hpp"
#include "marginwise/model/state.hpp"

namespace marginwise {

class Exact : public Model<double> {
  public:
    Exact(Dual<double> dual, ModelSettings common, ExactSettings settings, Index cache_bytes)
        : Model(std::move(dual), std::move(common)),
          own_(settings),
          rows_(cache_bytes),
          free_sets_(D.problems()) {
        D.full = true;
    }

    std::unique_ptr<Model<double>> clone() const override { return std::make_unique<Exact>(*this); }
    // A copy has the same solutions and its own workspace.
    Exact(const Exact& other)
        : Model(other),
          path(other.path),
          own_(other.own_),
          rows_(other.rows_),
          free_sets_(other.free_sets_) {}

    Index learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) override;

    void decision(const Sample& sample, double* out) const override;

    // Forgets the held examples ids[0..n), as if they had never been learned.
    void forget(const std::int64_t* ids, Index n);

    // out[s * problems + c]: the decision value of problem c for member s, trained without s.
    void leave_one_out(double* out);

    // Multiplies all costs by `factor` and follows the solution to the new costs.
    void scale_costs(double factor);

    // Solves all problems, starting from the restored coefficients. They may come from another
    // kernel or other costs. Computes the gradient from scratch.
    void solve();

    double target(Index c, Index k) const override { return conditions(c).target(k); }
    double objective(Index c) const override { return conditions(c).objective(); }

    // The largest violation of the conditions (2) in problem c, by the stored gradient.
    double violation(Index c) const { return conditions(c).violation(); }

    // 0 if problem c is solved to high accuracy; see Conditions.
    double shortfall(Index c) const { return conditions(c).shortfall(); }

    Vector<double> extra_state(Index c) const override;
    void set_extra_state(Index c, const double* notes) override;
    bool has_factors() const override { return true; }
    void save_factors(State<double>& state) const override;
    void restore_factors(const State<double>& state) override;
    const FreeSet& free_set_of(Index c) const { return free_sets_[c]; }

    // Throws if an invariant or a condition of the solution does not hold (for tests).
    void check(double tolerance) override;

    // The migrations recorded so far.
    Vector<Migration> path;

  private:
    Index member(Index c, Index k) const { return D.subproblems[c].member[k]; }
    exact::Conditions conditions(Index c) const {
        return {D.subproblems[c].P, free_sets_[c], own_};
    }

    // For calls that may be interrupted at any point; the caller then discards the model.
    exact::Resources interruptible(ThreadPool& workers) {
        return {D, rows_, workers, own_, [this] { return interrupted(); }};
    }
    // A change of problem c caused by example `cause`.
    exact::BinarySolver change(const exact::Resources& resources, Index c, std::int64_t cause) {
        const exact::Recorder recorder(own_.record ? &path : nullptr, cause);
        return {resources, c, free_sets_[c], recorder, workspace_};
    }

    void learn_example(const exact::Resources& resources, const Example& example, Index r);
    void make_room(const exact::Resources& resources, Index c, std::int64_t cause);
    Vector<Index> free_members() const;
    void compact_places(Index c);
    void compact_members(Index r);
    void set_free_set(Index c, const Vector<Index>& members, const double* packed);

    ExactSettings own_;
    FullRows rows_;
    Vector<FreeSet> free_sets_;
    exact::SupportVectors support_;
    exact::Workspace workspace_;
    Block<double, double> block_;
};

// -- arrivals and removals --------------------------------------------------------------------

inline Index Exact::learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    const Deadline deadline(seconds);
    support_.reset();
    ThreadPool workers(threads());
    const exact::Resources resources{D, rows_, workers, own_, [] { return false; }};
    BlockProduct<double, double> product(D, workers);
    Index learned = 0;
    beyond_ = false;
    while (learned < n && !beyond_) {
        const Index ahead = std::min(n - learned, Block<double>::rows_for(2 * D.size()));
        block_.read(batch, order + learned, ahead, settings_.scaling, D.size() + ahead);
        const Index within = block_.rows_within(settings_.norm_limit);
        beyond_ = within < ahead;
        {
            const Stopwatch phase(D.stats.product_seconds);
            product.finish(block_);
        }
        for (Index r = 0; r < within; ++r) {
            const Example example = batch.example(block_.source[r]);
            learn_example(resources, example, r);
            count_example(example.id);
            ++learned;
            if (D.wants_compaction()) compact_members(r);
            if (deadline.passed() || interrupted()) {
                beyond_ = beyond_ && learned == n;
                return learned;
            }
        }
    }
    return learned;
}

// Learns row r of the block.
inline void Exact::learn_example(const exact::Resources& resources, const Example& example,
                                 Index r) {
    if (D.members.find(example.id) != kNone)
        throw std::invalid_argument("an example is learned already");
    for (Index c = 0; c < D.problems(); ++c) make_room(resources, c, example.id);
    if (block_.valid[r] < D.size()) D.fill(block_.rows, r, block_.valid[r], block_.row(r));
    const Index s = D.append(block_.rows, r, example, block_.row(r));
    block_.valid[r] = D.size();
    const double* values = block_.row(r);
    rows_.append(D, free_members(), values);
    for (Index c = 0; c < D.problems(); ++c) {
        const double f = table().dot_full(D.subproblems[c].weight.data(), values, s);
        const Index k = D.open(c, s, 0.0, 0.0, Box::usual);
        D.problem(c).g[k] = conditions(c).target(k) - f;
        change(resources, c, example.id).learn(k, values);
    }
}

// If the window is full, forgets the oldest example or the one of least |alpha|.
inline void Exact::make_room(const exact::Resources& resources, Index c, std::int64_t cause) {
    const Problem& P = D.problem(c);
    if (own_.window == 0 || P.members() < own_.window) return;
    Index least = kNone;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        const double weight = std::abs(P.alpha[k]);
        if (least == kNone || weight < std::abs(P.alpha[least])) least = k;
        if (own_.oldest) break;
    }
    change(resources, c, cause).forget({least});
    compact_places(c);
}

inline void Exact::forget(const std::int64_t* ids, Index n) {
    support_.reset();
    ThreadPool workers(threads());
    const exact::Resources resources = interruptible(workers);
    for (Index c = 0; c < D.problems(); ++c) {
        Vector<Index> places;
        for (Index i = 0; i < n; ++i) {
            const Index s = D.members.find(ids[i]);
            const Index k = s == kNone ? kNone : D.subproblems[c].place[s];
            if (k != kNone) places.push_back(k);
        }
        if (!places.empty()) change(resources, c, ids[0]).forget(places);
        compact_places(c);
    }
    if (D.wants_compaction() || D.dead == D.size()) compact_members(kNone);
}

inline void Exact::leave_one_out(double* out) {
    ThreadPool workers(threads());
    const exact::Resources resources = interruptible(workers);
    for (Index c = 0; c < D.problems(); ++c)
        exact::leave_one_out(resources, c, free_sets_[c], workspace_, out);
}

inline void Exact::scale_costs(double factor) {
    support_.reset();
    ThreadPool workers(threads());
    const exact::Resources resources = interruptible(workers);
    for (Index c = 0; c < D.problems(); ++c) change(resources, c, kNone).scale_costs(factor);
    for (double& cost : D.cost) cost *= factor;
}

inline void Exact::solve() {
    support_.reset();
    ThreadPool workers(threads());
    const exact::Resources resources = interruptible(workers);
    for (Index c = 0; c < D.problems(); ++c) change(resources, c, kNone).solve();
}

// -- decisions --------------------------------------------------------------------------------

inline void Exact::decision(const Sample& sample, double* out) const {
    require_width(sample.X);
    const auto packed = support_.of(D);
    Vector<const double*> weight;
    for (const Array<double>& w : packed->weight) weight.push_back(w.data());
    for (Index r = 0; r < sample.n; ++r)
        for (Index c = 0; c < D.problems(); ++c)
            out[r * D.problems() + c] = D.subproblems[c].P.bias();
    expand<double>(D.kernel, packed->members, weight, settings_.scaling, threads(), sample, out);
}

// -- members and places -----------------------------------------------------------------------

// The free members of all problems; a member occurs once for each problem that it is free in.
inline Vector<Index> Exact::free_members() const {
    Vector<Index> found;
    for (Index c = 0; c < D.problems(); ++c)
        for (const Index k : free_sets_[c].place)
            if (k != kNone) found.push_back(member(c, k));
    return found;
}

// Removes the closed places of a problem if there are many, and renumbers S.
inline void Exact::compact_places(Index c) {
    Subproblem& sub = D.subproblems[c];
    if (D.problems() == 1 || !sub.wants_compaction()) return;
    FreeSet& S = free_sets_[c];
    for (Index& k : S.place)
        if (k != kNone) k = member(c, k);
    sub.compact();
    for (Index& k : S.place)
        if (k != kNone) k = sub.place[k];
    S.renumber();
}

// Removes the members that no problem holds, and renumbers the kernel rows, S, and the rows of the
// block after row r (none if r is kNone).
inline void Exact::compact_members(Index r) {
    for (Index s = 0; s < D.size(); ++s)
        if (D.holders[s] == 0) rows_.drop(s);
    Vector<Vector<std::int64_t>> ids(D.problems());
    for (Index c = 0; c < D.problems(); ++c)
        for (const Index k : free_sets_[c].place)
            ids[c].push_back(k == kNone ? 0 : D.members.ids[member(c, k)]);
    const Compaction compaction = D.compact();
    rows_.compact(compaction);
    if (r != kNone) block_.compact(compaction, r + 1);
    for (Index c = 0; c < D.problems(); ++c) {
        FreeSet& S = free_sets_[c];
        for (Index slot = 0; slot < S.place.size(); ++slot) {
            Index& k = S.place[slot];
            if (k != kNone) k = D.subproblems[c].place[D.members.find(ids[c][slot])];
        }
        S.renumber();
    }
}

// -- state ------------------------------------------------------------------------------------

inline Vector<double> Exact::extra_state(Index c) const {
    const FreeSet& S = free_sets_[c];
    return {static_cast<double>(S.resolved),
            static_cast<double>(S.indefinite),
            S.reach,
            S.shift,
            S.total,
            S.peak};
}

inline void Exact::set_extra_state(Index c, const double* notes) {
    FreeSet& S = free_sets_[c];
    S.resolved = static_cast<Index>(notes[0]);
    S.indefinite = notes[1] != 0;
    S.reach = notes[2];
    S.shift = notes[3];
    S.total = notes[4];
    S.peak = notes[5];
}

inline void Exact::save_factors(State<double>& state) const {
    for (Index c = 0; c < D.problems(); ++c) {
        const FreeSet& S = free_sets_[c];
        state.slots.push_back(S.place.size());
        for (const Index k : S.place)
            state.free_members.push_back(k == kNone ? kNone : member(c, k));
        const Vector<double> packed = S.factor.packed();
        state.factors.insert(state.factors.end(), packed.begin(), packed.end());
    }
}

inline void Exact::restore_factors(const State<double>& state) {
    require(state.slots.size() == D.problems(), "one size per problem");
    Index first = 0, value = 0;
    for (Index c = 0; c < D.problems(); ++c) {
        const Index n = state.slots[c], entries = Factor::packed_size(n);
        require(n >= 0 && first + n <= state.free_members.size() &&
                    value + entries <= state.factors.size(),
                "margins and factors do not fit");
        const std::int64_t* from = state.free_members.data() + first;
        set_free_set(c, {from, from + n}, state.factors.data() + value);
        first += n;
        value += entries;
    }
}

// Restores S and its factor from the members by slot (kNone for holes) and the result of packed().
inline void Exact::set_free_set(Index c, const Vector<Index>& members, const double* packed) {
    support_.reset();
    FreeSet& S = free_sets_[c];
    S.factor.unpack(packed, members.size());
    S.place.clear();
    for (const Index s : members) {
        S.place.push_back(s == kNone ? kNone : D.subproblems[c].place[s]);
        if (s != kNone) rows_.want(s, 1);
    }
    S.renumber();
}

inline void Exact::check(double tolerance) {
    ThreadPool workers(1);
    const exact::Resources resources = interruptible(workers);
    const Stats before = D.stats;  // restored: the check does not count as work
    for (Index c = 0; c < D.problems(); ++c) {
        exact::BinaryProblem B(resources, c, free_sets_[c], {nullptr, kNone});
        exact::check_solution(B, tolerance);
    }
    D.stats = before;
}

}  // namespace marginwise
