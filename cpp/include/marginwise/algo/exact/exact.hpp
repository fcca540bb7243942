// The exact solution after every arrival and every removal [laskov2006].
//
// Signed coefficients make the two problems of the paper one. With f(x) = sum_j alpha_j K(x_j, x) +
// b and a target t_i for each example, +1 or -1 for two classes, half the total times K(x_i, x_i)
// for a sphere, the conditions (2) are on h_i = t_i - f(x_i) = g_i - b:
//
//     alpha_i at lo: h_i <= 0,   between lo and hi: h_i = 0,   at hi: h_i >= 0.
//
// Something is driven along a line, such as the coefficient of a new example; the free examples
// S and the bias b answer linearly, so that h stays 0 on S, until one more example becomes free or
// ceases to be. That is followed to the end of the line, from event to event.
//
// Examples far from the margin are not watched on the way. The whole gradient is brought up to date
// at the end of each line, and an example that went astray meanwhile is then learned as if it had
// just come, which leads to the same solution.
//
// DEPARTS: the triangular factor of the kernel matrix of S, shifted, stands for the inverse of the
//          bordered matrix (15).
// DEPARTS: examples far from the margin are not watched along a line; see above.
// DEPARTS: examples that are forgotten together leave along one line.
// DEPARTS: an example that depends on S changes places with one of S, instead of being kept out.
// DEPARTS: a line that cannot be followed is given up, and the problem solved by pairs [fan2005].
// DEPARTS: the window is that of a binary problem, and may let the oldest go, not the lightest.
// DEPARTS: the coefficients of a sphere may add up to nu times their bounds, not to 1 only, and
//          there is no initialisation (algorithm 2).
#pragma once

#include <limits>
#include <memory>
#include <mutex>

#include "marginwise/algo/exact/free_set.hpp"
#include "marginwise/algo/exact/full_rows.hpp"
#include "marginwise/model/model.hpp"

namespace marginwise {

struct ExactSettings {
    bool sphere = false;  // one class, else two
    double nu = 0.0;      // of a sphere: the sum of alpha over the sum of hi; 0: the sum is 1
    Index window = 0;     // examples that a problem holds at most; 0: no limit
    bool oldest = false;  // who makes room: the oldest example, or that of least |alpha|
    bool screens = true;  // whether examples far from the margin go unwatched
    bool record = false;  // keep the path

    template <class F>
    void visit(F use) {  // record is for the model to say
        use("sphere", sphere);
        use("nu", nu);
        use("window", window);
        use("oldest", oldest);
        use("screen", screens);
    }
};

// Where an example is [laskov2006, section 2.3]: O, S or E.
enum class Set : std::int32_t { idle, free, bounded, gone };

// An example went from one set to another while `cause` was learned or forgotten.
struct Migration {
    std::int64_t cause, id;
    Index problem;
    Set from, to;
};

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
    // A copy follows no line.
    Exact(const Exact& other)
        : Model(other),
          path(other.path),
          own_(other.own_),
          rows_(other.rows_),
          free_sets_(other.free_sets_) {}

    Index learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) override;

    void decision(const Sample& sample, double* out) const override;

    // Forgets the examples ids[0..n), which are held, as if they had never been learned.
    void forget(const std::int64_t* ids, Index n);

    // out[s * problems + c]: what problem c would say of member s had it not learned it.
    void leave_one_out(double* out);

    // Multiplies all costs, and follows the solution there.
    void scale_costs(double factor);

    // Solves all problems from the coefficients that were restored, whatever kernel and costs they
    // were of. The gradient is computed here.
    void solve();

    double objective(Index c) const override;
    Vector<double> extra_state(Index c) const override {
        const FreeSet& M = free_sets_[c];
        return {static_cast<double>(M.resolved),
                static_cast<double>(M.indefinite),
                M.reach,
                M.shift,
                M.total,
                M.peak};
    }
    void set_extra_state(Index c, const double* notes) override {
        free_sets_[c].resolved = static_cast<Index>(notes[0]);
        free_sets_[c].indefinite = notes[1] != 0;
        free_sets_[c].reach = notes[2];
        free_sets_[c].shift = notes[3];
        free_sets_[c].total = notes[4];
        free_sets_[c].peak = notes[5];
    }
    const FreeSet& free_set_of(Index c) const { return free_sets_[c]; }
    // Restores S and its factor: members by slot (kNone for holes), and what packed() gave.
    void set_free_set(Index c, const Vector<Index>& members, const double* packed);

    // Throws if an invariant, or a condition of the solution, does not hold (for tests).
    void check(double tolerance) override;

    // Migrations so far, where they are recorded.
    Vector<Migration> path;

    // The largest violation of the conditions (2) in problem c, by the gradient that is kept.
    double violation(Index c) const;

    // 0 if problem c is solved: the conditions (2) hold to 1e-6 of the targets, or the duality gap
    // is below 1e-7 of the objective. Otherwise the largest violation, relative to the targets.
    double shortfall(Index c) const;

  private:
    // What is driven: alpha of some places to given ends, the sum of all alpha, and the box.
    struct Drive {
        Vector<Index> place;
        Vector<double> end;
        double total = 0.0;   // change of the sum of alpha
        double growth = 0.0;  // of hi and lo, relative to what they are
        Index until = kNone;  // a place: ends when its h is 0
        double left = 1.0;    // of the line
    };
    enum class End { done, again, stuck };
    enum class Mode : std::uint8_t { low, high, free, driven };

    // The examples that are watched, in columns, and what drives them.
    struct Watch {
        Vector<Index> place;
        Vector<std::int32_t> member;
        Vector<Mode> mode;
        Array<double> rate;         // of alpha
        Array<double> h, q, gamma;  // q: rate of h but for what S and b answer
        Array<double> K;            // kernel values of the slots with the columns, by rows
        Index stride = 0;
        Vector<Index> column;  // by place, kNone where it is not watched

        Index size() const { return place.size(); }
    };
    // What ends a step: a slot leaves S, a column becomes free, or neither and the line ends.
    struct Event {
        double step = 0.0;
        Index slot = kNone, column = kNone;
        bool upwards = false;  // the slot leaves for hi
    };

    Problem& problem(Index c) { return D.problem(c); }
    const Problem& problem(Index c) const { return D.subproblems[c].P; }
    FreeSet& free_set(Index c) { return free_sets_[c]; }
    const FreeSet& free_set(Index c) const { return free_sets_[c]; }
    Index member(Index c, Index k) const { return D.subproblems[c].member[k]; }
    const double* row(Index c, Index k) { return rows_.row(D, *workers_, member(c, k)); }
    double target(Index c, Index k) const {
        const Problem& P = problem(c);
        return own_.sphere ? free_set(c).total * P.diagonal[k] / 2 : P.y(k);
    }
    double wanted_total(Index c) const;
    double still(Index c, Index k) const;
    double grain(Index c, Index k, double relative) const;
    // sqrt(K(k, k)), or that of the smallest row of S, whose rounding the bias has.
    double length(Index c, Index k) const {
        const double least = std::max(free_set(c).shift, least_);
        return std::sqrt(std::max(std::abs(problem(c).diagonal[k]), least));
    }
    double bound(const Problem& P, Index k, bool upper) const {
        return scale_ * (upper ? P.hi[k] : P.lo[k]);
    }
    bool is_aside(Index k) const {
        return std::find(aside_.begin(), aside_.end(), k) != aside_.end();
    }
    bool at_bound(const Problem& P, Index k) const {
        return P.alpha[k] <= P.lo[k] || P.alpha[k] >= P.hi[k];
    }

    // The support vectors apart from the other members, who have no say, and their coefficients.
    struct Voters {
        Members<double> members;
        Vector<Array<double>> weight;  // by problem, padded
    };
    std::shared_ptr<const Voters> voters() const;

    Set set_of(Index c, Index k) const {
        if (free_set(c).has(k)) return Set::free;
        return problem(c).alpha[k] == 0.0 ? Set::idle : Set::bounded;
    }

    // Whether the user asks for a stop where that is possible: learning an example is completed,
    // while a model that is stopped otherwise is thrown away.
    bool stopped() { return stoppable_ && interrupted(); }

    // Arrivals and removals
    void learn_example(const Example& example, Block<double, double>& block, Index r);
    void make_room(Index c);
    void begin(Index c);
    void learn_in(Index c, Index k, const double* values);
    void forget_in(Index c, const Vector<Index>& places);
    bool unlearn(Index c, const Vector<Index>& places, double total);
    double bias_without(Index c, Index k);
    void leave_out(Index c, double* out);
    void close(Index c, Index k);
    Vector<Index> wanted() const;
    void tidy(Index c);
    void compact(Index r);

    // Following a line
    bool run(Index c, Drive drive);
    void watch(Index c, const Drive& drive, bool all);
    Index add_column(Index c, Index k, Mode mode, double h, double rate);
    void watch_slots(Index c);
    void set_row(Index slot, const double* values);
    void drive_with(Index c, Index k, double rate);
    End follow(Index c, Drive& drive);
    void sensitivities(Index c, double beta_b);
    Event next_event(Index c, const Drive& drive) const;
    void advance(Index c, Drive& drive, const Event& event, double beta_b);
    bool shift_bias(Index c, const Drive& drive, bool& reached);
    void leave(Index c, Index slot, bool upwards);
    void stand_at(Index c, Index w, bool upper);
    bool become_free(Index c, Index k, Set from);
    void fit_shift(Index c, Index k);
    bool exchange(Index c, Index k, double direction, Set from);
    bool arrive(Index c, Index k, Set from);
    void touch(Index c, Index k);
    void let_go();
    Index most_steps(Index c) const { return 1000 + 4 * problem(c).members(); }
    void commit(Index c, double total);
    void note(Index c, Index k, Set from, Set to);

    // Keeping it true
    bool settle(Index c);
    bool recall(Index c);
    bool refine(Index c);
    bool refactor(Index c);
    void rebuild(Index c);
    double pivot_of(Index c, Index k, const double* values);
    double careful_pivot(Index c, double diagonal);
    Index worst(Index c) const;
    void measure(Index c);
    double largest(Index c) const;
    bool drifted(Index c) const;
    bool unbalanced(Index c) const;
    void snap(Index c, double tolerance);
    void finish(Index c, bool good);
    void resolve(Index c);
    void rewrite_path(Index c);
    void rebalance(Index c);
    void descend(Index c, double tolerance);
    Index partner(Index c, Index i, const double* k_i) const;
    double curvature(const Problem& P, Index i, Index j, double k_ij) const;
    bool move_pair(Index c, Index i, Index j, const double* k_i);
    void regrade(Index c);
    void gather_margin(Index c);
    void clear_margin(Index c);

    ExactSettings own_;
    mutable std::mutex voters_mutex_;               // models may be asked by several threads
    mutable std::shared_ptr<const Voters> voters_;  // null where they have changed
    FullRows rows_;
    Vector<FreeSet> free_sets_;
    Vector<Set> sets_before_;  // by place, where the path is kept
    Index path_before_ = 0;
    std::int64_t cause_ = 0;
    ThreadPool* workers_ = nullptr;
    Block<double, double> block_;

    // Of the line that is followed
    Watch W_;
    Array<double> slot_q_;
    double sum_ = 0.0;    // what the coefficients of S have to add up to
    double scale_ = 1.0;  // of the box
    double growth_ = 0.0;
    Factor::Direction direction_;
    Vector<const double*> pointers_;
    Vector<std::pair<Index, double>> touched_;  // place, alpha before
    Vector<std::uint8_t> is_touched_;
    Array<double> change_, column_;
    Index steps_ = 0, idle_steps_ = 0, recalls_ = 0;
    Vector<Index> aside_;  // places that do not count for the moment

    // What rounding depends on, see measure()
    bool stoppable_ = true;
    double weight_ = 0.0;  // sum of |alpha| sqrt(K(k, k))
    double least_ = 0.0;   // what K(k, k) is taken for where it is less
    double speed_ = 0.0;   // of S along the line: sum of |beta| sqrt(K(k, k))
    double beta_b_ = 0.0;
    double doubt_ = 0.0;  // a pivot that is taken for 0
};

// -- arrivals and removals --------------------------------------------------------------------

inline Index Exact::learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) {
    require_width(batch.X);
    const Stopwatch whole(D.stats.learn_seconds);
    const Deadline deadline(seconds);
    ThreadPool workers(threads());
    workers_ = &workers;
    voters_ = nullptr;
    BlockProduct<double, double> product(D, workers);
    stoppable_ = false;
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
            learn_example(example, block_, r);
            count_example(example.id);
            ++learned;
            if (D.wants_compaction()) compact(r);
            if (deadline.passed() || interrupted()) {
                beyond_ = beyond_ && learned == n;
                workers_ = nullptr;
                return learned;
            }
        }
    }
    workers_ = nullptr;
    return learned;
}

inline void Exact::learn_example(const Example& example, Block<double, double>& block, Index r) {
    if (D.members.find(example.id) != kNone)
        throw std::invalid_argument("an example is learned already");
    cause_ = example.id;
    for (Index c = 0; c < D.problems(); ++c) make_room(c);
    if (block.valid[r] < D.size()) D.fill(block.rows, r, block.valid[r], block.row(r));
    const Index s = D.append(block.rows, r, example, block.row(r));
    block.valid[r] = D.size();
    const double* values = block.row(r);
    rows_.append(D, wanted(), values);
    for (Index c = 0; c < D.problems(); ++c) {
        const double f = table().dot_full(D.subproblems[c].weight.data(), values, s);
        const Index k = D.open(c, s, 0.0, 0.0, Box::usual);
        problem(c).g[k] = target(c, k) - f;
        learn_in(c, k, values);
    }
}

inline void Exact::begin(Index c) {
    free_set(c).bias = problem(c).bias();
    if (free_set(c).empty()) fit_shift(c, kNone);
    measure(c);
    steps_ = idle_steps_ = recalls_ = 0;
    if (!own_.record) return;
    path_before_ = path.size();
    sets_before_.clear();
    for (Index k = 0; k < problem(c).size; ++k) sets_before_.push_back(set_of(c, k));
}

// Algorithm 1 for place k, which has just been opened, with its kernel row.
inline void Exact::learn_in(Index c, Index k, const double* values) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    begin(c);
    if (P.members() == 1) M.bias = P.g[k];  // any will do
    bool good = !M.indefinite, moved = own_.sphere;
    if (own_.sphere && good) {  // it brings its share of the total
        const double total = wanted_total(c) - M.total, hi = P.hi[k];
        good = run(c, {{k}, {total > (1 - 1e-13) * hi ? hi : total}, total});
        M.total += total;
    }
    const double h = P.g[k] - M.bias;
    const bool rises = h > 0;
    const double end = rises ? P.hi[k] : P.lo[k];
    if (good && std::abs(h) > still(c, k) && P.alpha[k] != end) {  // 2
        ++D.stats.process;
        rows_.keep(D, member(c, k), values);
        good = run(c, {{k}, {end}, 0.0, 0.0, k});
        moved = true;
    }
    good = good && arrive(c, k, Set::idle);
    finish(c, good && (!moved || settle(c)));
}

// Place k has come to the end of its line.
inline bool Exact::arrive(Index c, Index k, Set from) {
    if (free_set(c).has(k)) return true;
    if (at_bound(problem(c), k)) {
        note(c, k, from, set_of(c, k));
        return true;
    }
    const bool good = become_free(c, k, from);
    commit(c, 0.0);
    return good;
}

inline void Exact::make_room(Index c) {
    const Problem& P = problem(c);
    if (own_.window == 0 || P.members() < own_.window) return;
    Index least = kNone;
    for (Index k = 0; k < P.size; ++k) {
        if (!P.open[k]) continue;
        const double weight = std::abs(P.alpha[k]);
        if (least == kNone || weight < std::abs(P.alpha[least])) least = k;
        if (own_.oldest) break;
    }
    forget_in(c, {least});
    tidy(c);
}

// All that leave are driven to 0 together.
inline bool Exact::unlearn(Index c, const Vector<Index>& places, double total) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    Drive drive;
    drive.total = total;
    bool moves = total != 0.0;
    for (const Index k : places) {
        if (M.has(k)) {
            rows_.want(member(c, k), -1);
            M.remove(k);
        }
        moves = moves || P.alpha[k] != 0.0;
        drive.place.push_back(k);
        drive.end.push_back(0.0);
    }
    return !moves || (!M.indefinite && run(c, std::move(drive)));
}

// What is held by no problem any more is wiped out at once, not only when memory is moved.
inline void Exact::close(Index c, Index k) {
    const Index s = member(c, k);
    D.close(c, k);
    if (D.holders[s] > 0) return;
    D.wipe(s);
    rows_.drop(s);
}

inline void Exact::forget_in(Index c, const Vector<Index>& places) {
    Problem& P = problem(c);
    FreeSet& M = free_set(c);
    begin(c);
    double total = 0.0;
    if (own_.sphere) {
        for (const Index k : places) P.open[k] = 0;  // they do not count any more
        total = wanted_total(c) - M.total;
        for (const Index k : places) P.open[k] = 1;
    }
    const bool good = unlearn(c, places, total);
    M.total += total;
    if (!good) {
        clear_margin(c);
        for (const Index k : places) {
            P.alpha[k] = 0.0;
            P.refresh(k);
            D.weigh(c, k);
        }
    }
    for (const Index k : places) {
        if (own_.record) note(c, k, sets_before_[k], Set::gone);
        close(c, k);
    }
    finish(c, good && settle(c));
}

inline void Exact::forget(const std::int64_t* ids, Index n) {
    voters_ = nullptr;
    stoppable_ = true;
    ThreadPool workers(threads());
    workers_ = &workers;
    for (Index c = 0; c < D.problems(); ++c) {
        Vector<Index> places;
        for (Index i = 0; i < n; ++i) {
            const Index s = D.members.find(ids[i]);
            const Index k = s == kNone ? kNone : D.subproblems[c].place[s];
            if (k != kNone) places.push_back(k);
        }
        cause_ = n > 0 ? ids[0] : 0;
        if (!places.empty()) forget_in(c, places);
        tidy(c);
    }
    if (D.wants_compaction() || D.dead == D.size()) compact(kNone);
    workers_ = nullptr;
}

inline void Exact::leave_one_out(double* out) {
    stoppable_ = true;
    ThreadPool workers(threads());
    workers_ = &workers;
    const bool records = std::exchange(own_.record, false);
    for (Index c = 0; c < D.problems(); ++c) leave_out(c, out);
    own_.record = records;
    workers_ = nullptr;
}

// The bias where the conditions of place k do not count.
inline double Exact::bias_without(Index c, Index k) {
    Problem& P = problem(c);
    P.up[k] = -simd::Extremes::kInfinite;
    P.down[k] = simd::Extremes::kInfinite;
    P.find_extremes();
    const double b = P.bias();
    P.refresh(k);
    P.find_extremes();
    return b;
}

// An example without weight changes nothing by leaving, but for a bias that it bounds. Another one
// is unlearned, asked about, and all is put back.
inline void Exact::leave_out(Index c, double* out) {
    const Problem before = problem(c);
    const FreeSet margin_before = free_set(c);
    for (Index k = 0; k < before.size; ++k) {
        if (!before.open[k]) continue;
        if (stopped()) return;
        Problem& P = problem(c);
        FreeSet& M = free_set(c);
        const bool weighs = P.alpha[k] != 0.0;
        if (weighs) {
            begin(c);
            const bool good = unlearn(c, {k}, 0.0);
            P.alpha[k] = 0.0;
            aside_ = {k};
            finish(c, good && settle(c));
            aside_.clear();
        }
        out[member(c, k) * D.problems() + c] = P.y(k) - P.g[k] + bias_without(c, k);
        if (!weighs) continue;
        clear_margin(c);
        P = before;
        M = margin_before;
        for (const Index l : M.place)
            if (l != kNone) rows_.want(member(c, l), 1);
        for (Index l = 0; l < P.size; ++l)
            if (P.open[l]) D.weigh(c, l);
    }
}

// The box grows, and what stands at its sides goes along.
inline void Exact::scale_costs(double factor) {
    voters_ = nullptr;
    stoppable_ = true;
    ThreadPool workers(threads());
    workers_ = &workers;
    cause_ = kNone;
    for (Index c = 0; c < D.problems(); ++c) {
        Problem& P = problem(c);
        FreeSet& M = free_set(c);
        begin(c);
        Drive drive;
        drive.growth = factor - 1.0;
        const bool good = !M.indefinite && run(c, std::move(drive));
        const double rounding = 1e-12 * std::max(1.0, 1.0 / factor);
        for (Index k = 0; k < P.size; ++k) {
            if (!P.open[k]) continue;
            double& alpha = P.alpha[k];
            const bool bounded = good && alpha != 0.0 && !M.has(k);
            P.side[k] *= factor;
            P.set_box(k, Box::usual);
            alpha = bounded ? P.side[k] : std::clamp(alpha, P.lo[k], P.hi[k]);
            P.refresh(k);
            D.weigh(c, k);
        }
        if (!good) clear_margin(c);
        measure(c);
        snap(c, rounding);
        finish(c, good && settle(c));
    }
    for (double& cost : D.cost) cost *= factor;
    workers_ = nullptr;
}

inline void Exact::solve() {
    voters_ = nullptr;
    stoppable_ = true;
    ThreadPool workers(threads());
    workers_ = &workers;
    cause_ = kNone;
    for (Index c = 0; c < D.problems(); ++c) {
        begin(c);
        finish(c, false);
        --free_set(c).resolved;  // there was no path to follow
    }
    workers_ = nullptr;
}

inline double Exact::wanted_total(Index c) const {
    if (!own_.sphere) return 0.0;
    const Problem& P = problem(c);
    double most = 0;
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) most += P.hi[k];
    return own_.nu > 0 ? own_.nu * most : std::min(1.0, most);
}

inline double Exact::objective(Index c) const {
    const Problem& P = problem(c);
    double sum = 0;
    for (Index k = 0; k < P.size; ++k)
        if (P.open[k]) sum += P.alpha[k] * (target(c, k) + P.g[k]);
    return sum / 2;
}

inline std::shared_ptr<const Exact::Voters> Exact::voters() const {
    const std::lock_guard<std::mutex> hold(voters_mutex_);
    if (voters_) return voters_;
    const Members<double>& all = D.members;
    auto found = std::make_shared<Voters>(Voters{{all.features(), all.sparse()}, {}});
    Vector<Index> at;
    for (Index s = 0; s < D.size(); ++s) {
        const auto weighs = [s](const Subproblem& sub) { return sub.weight[s] != 0.0; };
        if (std::any_of(D.subproblems.begin(), D.subproblems.end(), weighs)) at.push_back(s);
    }
    Rows<double> row;
    for (const Index s : at) {
        all.extract(s, row);
        found->members.append(row, 0, all.ids[s]);
    }
    for (const Subproblem& sub : D.subproblems) {
        found->weight.emplace_back(padded(at.size()), 0.0);
        for (Index v = 0; v < at.size(); ++v) found->weight.back()[v] = sub.weight[at[v]];
    }
    return voters_ = found;
}

inline void Exact::decision(const Sample& sample, double* out) const {
    require_width(sample.X);
    const std::shared_ptr<const Voters> they = voters();
    Vector<const double*> weight;
    for (const Array<double>& w : they->weight) weight.push_back(w.data());
    for (Index r = 0; r < sample.n; ++r)
        for (Index c = 0; c < D.problems(); ++c) out[r * D.problems() + c] = problem(c).bias();
    expand<double>(D.kernel, they->members, weight, settings_.scaling, threads(), sample, out);
}

// Members that are free in some problem.
inline Vector<Index> Exact::wanted() const {
    Vector<Index> found;
    for (Index c = 0; c < D.problems(); ++c)
        for (const Index k : free_set(c).place)
            if (k != kNone) found.push_back(member(c, k));
    return found;
}

// Closed places of a problem are removed when there are many, and then members that no problem
// holds. The margins follow.
inline void Exact::tidy(Index c) {
    Subproblem& sub = D.subproblems[c];
    if (D.problems() == 1 || !sub.wants_compaction()) return;
    FreeSet& M = free_set(c);
    for (Index& k : M.place)
        if (k != kNone) k = member(c, k);
    sub.compact();
    for (Index& k : M.place)
        if (k != kNone) k = sub.place[k];
    M.renumber();
}

inline void Exact::compact(Index r) {
    for (Index s = 0; s < D.size(); ++s)
        if (D.holders[s] == 0) rows_.drop(s);
    Vector<Vector<std::int64_t>> ids(D.problems());
    for (Index c = 0; c < D.problems(); ++c)
        for (const Index k : free_set(c).place)
            ids[c].push_back(k == kNone ? 0 : D.members.ids[member(c, k)]);
    const Compaction compaction = D.compact();
    rows_.compact(compaction);
    if (r != kNone) block_.compact(compaction, r + 1);
    for (Index c = 0; c < D.problems(); ++c) {
        FreeSet& M = free_set(c);
        for (Index slot = 0; slot < M.place.size(); ++slot) {
            Index& k = M.place[slot];
            if (k != kNone) k = D.subproblems[c].place[D.members.find(ids[c][slot])];
        }
        M.renumber();
    }
}

inline void Exact::set_free_set(Index c, const Vector<Index>& members, const double* packed) {
    voters_ = nullptr;
    FreeSet& M = free_set(c);
    M.factor.unpack(packed, members.size());
    M.place.clear();
    for (const Index s : members) {
        M.place.push_back(s == kNone ? kNone : D.subproblems[c].place[s]);
        if (s != kNone) rows_.want(s, 1);
    }
    M.renumber();
}

}  // namespace marginwise

#include "marginwise/algo/exact/exact_path.hpp"
#include "marginwise/algo/exact/exact_settle.hpp"
