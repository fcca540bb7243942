// The model in the core: the dual state and the interface common to all algorithms.
#pragma once

#include <memory>

#include "marginwise/base/interrupts.hpp"
#include "marginwise/base/lock.hpp"
#include "marginwise/model/block.hpp"
#include "marginwise/model/selection.hpp"
#include "marginwise/predict/decision.hpp"
#include "marginwise/predict/rough.hpp"
#include "marginwise/solve/duality_gap.hpp"
#include "marginwise/solve/leave_out.hpp"

namespace marginwise {

// Options of learn_ahead().
struct Look {
    bool roughly;     // ignore rows that violate the margin only slightly
    float* distance;  // output, by row of the batch: how far it is from violating
};

struct ModelSettings {
    FeatureScaling scaling{};
    double norm_limit = 1e300;  // largest |x|^2 that the precision of T supports
    Index threads = 1;
    bool record = false;    // keep a Record of every example and problem
    Index budget = 0;       // maximal number of members; 0: no limit
    bool foresees = false;  // keep decision values of examples that were not learned yet
    Index most_steps = 0;   // steps of ExactRamp per example, for tests; 0: the usual limit
};

template <class T>
struct State;

// The state of a problem after an example.
struct Record {
    double gap;
    Index members;
    std::int64_t kernel_evaluations;
};

// A model remains valid if an interrupt stops learning, but not if one stops any other call.
template <class T>
class Model : public Interrupts {
  public:
    Model(Dual<T> dual, ModelSettings settings)
        : D(std::move(dual)), settings_(std::move(settings)) {
        if (!settings_.foresees) return;
        const Index most = D.problems() == 1 ? kMostForeseen : kMostForeseen / 2;
        for (Subproblem& sub : D.subproblems) sub.foresight = Foresight(most);
    }
    virtual ~Model() = default;
    Model& operator=(const Model&) = delete;

    // A copy that continues exactly as this model would. It shares features until either model
    // changes them, and does not copy kernel rows, so it costs little more than the coefficients.
    virtual std::unique_ptr<Model> clone() const = 0;

    Dual<T> D;

    // Held by every user of the model; the methods below leave locking to their caller.
    mutable Guard guard;

    // The smallest id that is larger than the ids of all examples seen.
    std::int64_t next_id = 0;
    void reserve_ids(std::int64_t next) { next_id = std::max(next_id, next); }
    // Number of examples seen since this was last set.
    std::int64_t since_finish = 0;
    void count_since_finish(std::int64_t count) { since_finish = count; }

    // Learns rows order[0..n) of the batch, one at a time and in that order, until `seconds` have
    // passed or a row is beyond norm_limit; returns how many were learned. The model depends only
    // on the sequence of examples, not on how it is split into calls.
    virtual Index learn(const Batch& batch, const std::int64_t* order, Index n, double seconds) = 0;

    // The same, but algorithms that can look ahead learn windows of examples together, worst first.
    // A call that ends at its deadline leaves the window open for the next call, and the last row
    // of `order` closes it, so the model does not depend on the clock. Call rest() before any
    // method other than learn_ahead() and finish().
    virtual Index learn_ahead(const Batch& batch, const std::int64_t* order, Index n, const Look&,
                              double seconds) {
        return learn(batch, order, n, seconds);
    }
    void rest() { D.rest(); }

    // Makes all rows order[0..n) of a small set members with weight 0, so that finish() solves the
    // problems like a batch solver. Returns false and changes nothing if the model has members, the
    // algorithm does not look ahead, or a row is beyond norm_limit.
    virtual bool adopt(const Batch&, const std::int64_t*, Index) { return false; }

    // Like learn(), but if `wanted` is not null, problem c learns row order[k] only if
    // wanted[k * problems + c] is set.
    virtual Index learn_wanted(const Batch&, const std::int64_t*, const std::uint8_t*, Index,
                               double) {
        refuse_to_choose();
    }

    // Starts a pass that learns only the best example of each pool. seen[c * examples + id] is 1 if
    // problem c has learned example `id`; the pass sets it for the examples that it learns. The
    // array must outlive the pass.
    virtual void begin_pass(const Choice&, std::uint8_t*, Index) { refuse_to_choose(); }

    // Like learn(), but offers rows order[0..n) of the batch to the pools and learns only the
    // chosen ones. Returns the number of rows offered.
    virtual Index select(const Batch&, const std::int64_t*, Index, double) { refuse_to_choose(); }

    // Ends the pass; learns the best examples of incomplete pools.
    virtual void end_pass() { refuse_to_choose(); }

    // Solves the problems over the members to within tau, if the algorithm can, or until `seconds`
    // have passed; returns whether it is done. If not, call finish() again or end_finish() before
    // any other method.
    virtual bool finish(double, double) { return true; }

    // Abandons a finish() that is not done.
    virtual void end_finish() {}

    // out[r * problems + c] = f_c(x_r), for the rows of a sample.
    virtual void decision(const Sample& sample, double* out) const;

    // The same for all rows of a batch, but only in the problems that involve the class of the row;
    // 0 in the others. Each class needs kernel values only with the support vectors of its
    // problems.
    void own_decision(const Batch& batch, double* out) const;

    // Decision values in single precision, for screening.
    void rough_decision(const Sample& sample, float* out) const;

    // Sets out[r * problems + c] = f_c(x_r), in single precision, for all rows of X where
    // asked[r * problems + c] is nonzero, and leaves the other values unchanged. Each problem needs
    // kernel values only with its own support vectors.
    void rough_decision_where(const Matrix& X, const std::uint8_t* asked, float* out) const;

    // Rough decision values of an expansion over a few packed centres instead of the members.
    void rough_expansion(const Members<T>& centres, const RoughWeights& weights,
                         const Sample& sample, float* out) const {
        require_width(sample.X);
        expand_roughly(D.kernel, centres, weights, settings_.scaling, threads(), sample, out);
    }

    // out[r * centres + m] = K(x_r, centre m), for the rows of a sample.
    void cross_values(const Members<T>& centres, const Sample& sample, float* out) const {
        require_width(sample.X);
        cross(D.kernel, centres, settings_.scaling, threads(), sample, out);
    }

    // Rows packed into tiles like members, for add_expansion().
    Members<T> pack(const Matrix& X) const;

    // out[r * problems + c] += sum_m coefficients[c * centres + m] K(centre m, x_r), for packed
    // rows: the change of decision values when the coefficients of a few examples change.
    void add_expansion(const Matrix& centres, const double* coefficients, const Members<T>& rows,
                       double* out) const;

    // out[r] = K(x_r, x_r).
    void diagonal(const Matrix& X, double* out) const;

    double bias(Index c) const { return D.subproblems[c].P.bias(); }

    // The target of place k in problem c: the gradient is target - f.
    virtual double target(Index c, Index k) const { return D.subproblems[c].P.y(k); }

    // W(alpha) of problem c.
    virtual double objective(Index c) const { return D.objective(c); }

    // The coefficients of problem c used for decision values, by member: current or averaged.
    virtual Array<double> output(Index c) const { return D.subproblems[c].weight; }

    // The inaccuracy of the solution of problem c, which widens the margin when examples are
    // selected. If negative, it is minus the width of the interval that contains the bias.
    virtual double slack(Index) const { return 0.0; }

    // Whether problem c can judge examples yet.
    virtual bool judges(Index) const { return true; }

    // State of problem c that the algorithm keeps besides coefficients and gradient; saved as the
    // array `notes`.
    virtual Vector<double> extra_state(Index) const { return {}; }
    virtual void set_extra_state(Index, const double*) {}

    // The same for the additional arrays of an exact model.
    virtual bool has_factors() const { return false; }
    virtual void save_factors(State<T>&) const {}
    virtual void restore_factors(const State<T>&) {}

    // Whether the loss may have a ramp. If so, the saved state includes the suspects.
    virtual bool has_ramp() const { return false; }

    // Throws if an invariant does not hold (for tests).
    virtual void check(double tolerance) { D.check(tolerance); }

    // Computes f of some rows of a batch with the current model, and adds the values to the
    // foresight of the problems that involve their classes.
    void foresee(const Batch& batch, View<std::int64_t> rows);

    // Leave-one-out decision values of examples, see solve/leave_out.hpp.
    void leave_out(View<std::int64_t> ids, Index steps, double* out) const {
        Vector<Index> found;
        for (const std::int64_t id : ids) found.push_back(D.members.find(id));
        const std::unique_ptr<Model> copy = clone();
        marginwise::leave_out(copy->D, found, steps, threads(), out);
    }

    // Whether the last call stopped at a row beyond norm_limit.
    bool beyond() const { return beyond_; }

    // Whether no row of X is beyond norm_limit.
    bool within_limit(const Matrix& X) const;

    // The records, ordered by example, then by problem.
    Vector<Record> records;

  protected:
    Model(const Model& other)
        : Interrupts(other),
          D(other.D),
          next_id(other.next_id),
          since_finish(other.since_finish),
          records(other.records),
          settings_(other.settings_) {
        D.reindex();
    }

    // Counts an example that was presented.
    void count_example(std::int64_t id) {
        if (id >= next_id) next_id = id < std::numeric_limits<std::int64_t>::max() ? id + 1 : id;
        ++since_finish;
    }

    Index threads() const { return D.kernel.is_callable() ? 1 : settings_.threads; }
    void require_width(const Matrix& X) const {
        if (cols_of(X) != D.members.features())
            throw std::invalid_argument("rows are not as wide as the members");
    }

    ModelSettings settings_;
    bool beyond_ = false;

  private:
    static constexpr Index kMostForeseen = 4096;  // values kept per problem; half if several

    // Calls use(row, r) for the rows of X one by one.
    template <class F>
    void each_row(const Matrix& X, F use) const {
        Rows<T> row;
        for (std::int64_t r = 0; r < rows_of(X); ++r) {
            row.read(X, &r, 1, settings_.scaling);
            use(row, r);
        }
    }

    [[noreturn]] static void refuse_to_choose() {
        throw std::logic_error("this algorithm learns all examples that it is given");
    }
};

template <class T>
void Model<T>::decision(const Sample& sample, double* out) const {
    require_width(sample.X);
    const auto weights = [this](Index c) { return output(c); };
    decide(D, weights, settings_.scaling, threads(), sample, out);
}

template <class T>
void Model<T>::foresee(const Batch& batch, View<std::int64_t> rows) {
    const Index problems = D.problems();
    Array<double> f(rows.size * problems);
    decision(Sample(batch.X, rows.data, rows.size), f.data());
    for (Index k = 0; k < rows.size; ++k) {
        const Example example = batch.example(rows.data[k]);
        for (Index c = 0; c < problems; ++c)
            if (const double y = D.sign(c, example.label); y != 0 && judges(c))
                D.subproblems[c].foresight.add(f[k * problems + c], y * example.weight);
    }
}

template <class T>
void Model<T>::own_decision(const Batch& batch, double* out) const {
    if (!D.in_pairs()) return decision(batch.X, out);
    require_width(batch.X);
    const Index problems = D.problems(), n = rows_of(batch.X);
    std::fill_n(out, n * problems, 0.0);
    for (std::int32_t label = 0; label < D.classes_in_pairs(problems); ++label) {
        Vector<Index> own;  // problems
        for (Index c = 0; c < problems; ++c)
            if (D.sign(c, label) != 0) own.push_back(c);
        Vector<Index> held;
        for (Index s = 0; s < D.size(); ++s)
            if (std::any_of(own.begin(), own.end(),
                            [&](Index c) { return D.subproblems[c].weight[s] != 0.0; }))
                held.push_back(s);
        Vector<Array<double>> weights;
        Vector<const double*> weight;
        for (const Index c : own) {
            weights.emplace_back(padded(held.size()), 0.0);
            for (Index k = 0; k < held.size(); ++k)
                weights.back()[k] = D.subproblems[c].weight[held[k]];
        }
        for (const Array<double>& w : weights) weight.push_back(w.data());
        Vector<std::int64_t> rows;
        for (Index r = 0; r < n; ++r)
            if (batch.label[r] == label) rows.push_back(r);
        Array<double> f(rows.size() * own.size(), 0.0);
        expand<float>(D.kernel, D.members.some(held), weight, settings_.scaling, threads(),
                      Sample(batch.X, rows.data(), rows.size()), f.data());
        for (Index k = 0; k < rows.size(); ++k)
            for (Index o = 0; o < own.size(); ++o)
                out[rows[k] * problems + own[o]] =
                    f[k * own.size() + o] + D.subproblems[own[o]].P.bias();
    }
}

template <class T>
void Model<T>::rough_decision(const Sample& sample, float* out) const {
    require_width(sample.X);
    Vector<Array<double>> weight;
    Vector<double> bias;
    for (Index c = 0; c < D.problems(); ++c) {
        weight.push_back(output(c));
        bias.push_back(D.subproblems[c].P.bias());
    }
    expand_roughly(D.kernel, D.members, RoughWeights(weight, bias, D.size()), settings_.scaling,
                   threads(), sample, out);
}

template <class T>
void Model<T>::rough_decision_where(const Matrix& X, const std::uint8_t* asked, float* out) const {
    require_width(X);
    const Index problems = D.problems();
    ThreadPool workers(threads());
    workers.run(problems, [&](Index c, Index) {
        Vector<std::int64_t> rows;
        for (Index r = 0; r < rows_of(X); ++r)
            if (asked[r * problems + c]) rows.push_back(r);
        const Array<double> weight = output(c);
        Vector<Index> held;
        for (Index s = 0; s < D.size(); ++s)
            if (weight[s] != 0.0) held.push_back(s);
        Array<double> own;
        for (const Index s : held) own.push_back(weight[s]);
        Array<float> f(rows.size());
        expand_roughly(D.kernel, D.members.some(held),
                       RoughWeights({own}, {D.subproblems[c].P.bias()}, held.size()),
                       settings_.scaling, 1, Sample(X, rows.data(), rows.size()), f.data());
        for (Index k = 0; k < rows.size(); ++k) out[rows[k] * problems + c] = f[k];
    });
}

template <class T>
Members<T> Model<T>::pack(const Matrix& X) const {
    require_width(X);
    Members<T> rows(D.members.features(), D.members.sparse());
    each_row(X, [&](const Rows<T>& row, Index r) { rows.append(row, 0, r); });
    return rows;
}

template <class T>
void Model<T>::add_expansion(const Matrix& centres, const double* coefficients,
                             const Members<T>& rows, double* out) const {
    require_width(centres);
    expand_over(D.kernel, centres, {coefficients, D.problems()}, settings_.scaling, threads(), rows,
                out);
}

template <class T>
bool Model<T>::within_limit(const Matrix& X) const {
    require_width(X);
    bool within = true;
    each_row(X, [&](const Rows<T>& row, Index) {
        within = within && static_cast<double>(row.norms[0]) <= settings_.norm_limit;
    });
    return within;
}

template <class T>
void Model<T>::diagonal(const Matrix& X, double* out) const {
    require_width(X);
    each_row(X, [&](const Rows<T>& row, Index r) { out[r] = D.diagonal_of(row, 0); });
}

}  // namespace marginwise
