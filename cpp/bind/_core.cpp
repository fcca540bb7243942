// The binding: what crosses between NumPy and the core, and nothing else.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <shared_mutex>

#include "marginwise/algo/exact/exact.hpp"
#include "marginwise/algo/exact_ramp.hpp"
#include "marginwise/algo/gap.hpp"
#include "marginwise/algo/lasvm.hpp"
#include "marginwise/algo/perceptron.hpp"
#include "marginwise/algo/tracking.hpp"
#include "marginwise/bench/product_time.hpp"
#include "marginwise/dual/verify.hpp"
#include "marginwise/images/deform.hpp"

template <class T>
struct nanobind::detail::type_caster<marginwise::Vector<T>>
    : nanobind::detail::list_caster<marginwise::Vector<T>, T> {};

namespace nb = nanobind;
using namespace marginwise;

namespace {

template <class V>
using Array1 = nb::ndarray<const V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class V>
using Array2 = nb::ndarray<const V, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// NumPy counts with size_t, we count with Index.
Index length(std::size_t n) { return static_cast<Index>(n); }
std::size_t size_of(Index n) { return static_cast<std::size_t>(n); }

// A new NumPy array that owns a copy of `data`.
template <class V>
nb::ndarray<nb::numpy, V> numpy(const V* data, std::initializer_list<Index> shape) {
    Index n = 1;
    for (const Index k : shape) n *= k;
    V* copy = new V[size_of(std::max<Index>(n, 1))];
    std::copy(data, data + n, copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<V*>(p); });
    const std::vector<std::size_t> sizes(shape.begin(), shape.end());
    return nb::ndarray<nb::numpy, V>(copy, sizes.size(), sizes.data(), owner);
}
template <class V, class A>
nb::ndarray<nb::numpy, V> numpy(const Vector<V, A>& v) {
    return numpy(v.data(), {v.size()});
}

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

KernelKind kind_named(const std::string& name) {
    static const std::map<std::string, KernelKind> kinds{
        {"linear", KernelKind::linear},     {"rbf", KernelKind::rbf},
        {"poly", KernelKind::poly},         {"sigmoid", KernelKind::sigmoid},
        {"cosine", KernelKind::cosine},     {"tanimoto", KernelKind::tanimoto},
        {"callable", KernelKind::callable},
    };
    const auto found = kinds.find(name);
    require(found != kinds.end(), "unknown kernel");
    return found->second;
}

Selection rule_named(const std::string& name) {
    static const std::map<std::string, Selection> rules{{"random", Selection::random},
                                                        {"gradient", Selection::gradient},
                                                        {"active", Selection::active},
                                                        {"autoactive", Selection::autoactive}};
    const auto found = rules.find(name);
    require(found != rules.end(), "unknown selection");
    return found->second;
}

// Labelled rows, with the arrays they are views of kept alive.
struct BoundBatch {
    Batch batch;
    nb::object owner;

    template <class V>
    static Matrix dense(const Array2<V>& X) {
        return DenseView<V>{X.data(), length(X.shape(0)), length(X.shape(1))};
    }
    template <class V>
    static Matrix csr(const Array1<V>& data, const Array1<std::int32_t>& indices,
                      const Array1<std::int64_t>& indptr, Index cols) {
        require(indptr.shape(0) >= 1 && data.shape(0) == indices.shape(0), "inconsistent CSR");
        return CsrView<V>{data.data(), indices.data(), indptr.data(), length(indptr.shape(0)) - 1,
                          cols};
    }
    void label(Array1<std::int32_t> label, Array1<double> cost, Array1<std::int64_t> ids) {
        const std::size_t n = size_of(rows_of(batch.X));
        require(label.shape(0) == n && cost.shape(0) == n && ids.shape(0) == n,
                "labels, costs and ids must have one value a row");
        batch.label = label.data();
        batch.cost = cost.data();
        batch.ids = ids.data();
        owner = nb::make_tuple(owner, label, cost, ids);
    }
};

// A kernel that is a Python function. Each model holds a reference of its own, which the garbage
// collector is shown: a function may know the model that it is the kernel of.
struct FunctionKernel {
    nb::object callable;

    void operator()(const double* a, Index m, const double* b, Index n, Index d,
                    double* out) const {
        nb::gil_scoped_acquire held;
        const auto copy = [d](const double* x, Index rows) { return numpy(x, {rows, d}); };
        const nb::object values = callable(copy(a, m), copy(b, n));
        const auto array = nb::cast<Array2<double>>(values);
        require(length(array.shape(0)) == m && length(array.shape(1)) == n, "kernel block shape");
        std::copy(array.data(), array.data() + m * n, out);
    }
};

BlockKernel block_kernel(nb::object callable) {
    if (callable.is_none()) return nullptr;
    return FunctionKernel{std::move(callable)};
}

template <class T>
int visit_model(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const BlockKernel& function = nb::inst_ptr<Model<T>>(self)->D.kernel.callable();
    if (const auto* kernel = function.template target<FunctionKernel>())
        Py_VISIT(kernel->callable.ptr());
    return 0;
}
template <class T>
int clear_model(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Model<T>>(self)->D.kernel.forget_callable();
    return 0;
}

// Holds a model for reading, or alone, while the interpreter is free for other threads.
template <class T>
struct Reader {
    explicit Reader(const Model<T>& model) : hold(model.guard) {}
    nb::gil_scoped_release released;
    std::shared_lock<Guard> hold;
};
template <class T>
struct Writer {
    explicit Writer(Model<T>& model) : hold(model.guard) {}
    nb::gil_scoped_release released;
    std::unique_lock<Guard> hold;
};

// The same with the interpreter, for what makes Python objects. It is never held while waiting: a
// thread that has the model may need it for its kernel function.
template <class T>
std::shared_lock<Guard> reader(const Model<T>& model) {
    const nb::gil_scoped_release released;
    return std::shared_lock<Guard>(model.guard);
}
template <class T>
std::unique_lock<Guard> writer(Model<T>& model) {
    const nb::gil_scoped_release released;
    return std::unique_lock<Guard>(model.guard);
}

// Runs work(), which looks now and then whether there is a signal to answer, such as Ctrl-C.
template <class T, class F>
auto interruptible(Model<T>& model, F work) {
    std::exception_ptr raised;
    const auto check_signals = [&raised] {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() == 0) return false;
        raised = std::make_exception_ptr(nb::python_error());
        return true;
    };
    struct Answering {
        Model<T>& model;
        ~Answering() { model.answer_to(nullptr); }
    };
    const auto result = [&] {
        const Writer<T> hold(model);
        model.answer_to(check_signals);
        const Answering until_done{model};
        return work();
    }();
    if (raised) std::rethrow_exception(raised);
    return result;
}

using State = nb::typed<nb::dict, nb::str, nb::any>;

template <class T>
State export_features(const Members<T>& members) {
    const Index n = members.size(), d = members.features();
    State out;
    Rows<T> row;
    if (!members.sparse()) {
        Array<T> X(n * d, T(0));
        for (Index s = 0; s < n; ++s) {
            members.extract(s, row);
            for (Index p = 0; p < row.value.size(); ++p) X[s * d + row.index[p]] = row.value[p];
        }
        out["X"] = numpy(X.data(), {n, d});
        return out;
    }
    Vector<T> data;
    Vector<std::int32_t> indices;
    Vector<std::int64_t> indptr{0};
    for (Index s = 0; s < n; ++s) {
        members.extract(s, row);
        data.insert(data.end(), row.value.begin(), row.value.end());
        indices.insert(indices.end(), row.index.begin(), row.index.end());
        indptr.push_back(data.size());
    }
    out["data"] = numpy(data);
    out["indices"] = numpy(indices);
    out["indptr"] = numpy(indptr);
    return out;
}

// Ids, classes and, problem by problem, coefficients of the support vectors.
template <class T>
nb::typed<nb::tuple, nb::any, nb::any, nb::any> export_coefficients(const Model<T>& L) {
    const auto hold = reader(L);
    const Dual<T>& D = L.D;
    Vector<Array<double>> weight;
    for (Index c = 0; c < D.problems(); ++c) weight.push_back(L.output(c));
    Vector<std::int64_t> ids;
    Vector<std::int32_t> labels;
    Vector<Vector<double>> alpha(D.problems());
    for (Index s = 0; s < D.size(); ++s) {
        const auto weighs = [s](const Array<double>& w) { return w[s] != 0.0; };
        if (std::none_of(weight.begin(), weight.end(), weighs)) continue;
        ids.push_back(D.members.ids[s]);
        labels.push_back(D.label[s]);
        for (Index c = 0; c < alpha.size(); ++c) alpha[c].push_back(weight[c][s]);
    }
    Vector<double> rows;
    for (const Vector<double>& row : alpha) rows.insert(rows.end(), row.begin(), row.end());
    return nb::make_tuple(numpy(ids), numpy(labels),
                          numpy(rows.data(), {alpha.size(), ids.size()}));
}

nb::ndarray<nb::numpy, std::int64_t> counters_of(const Stats& s) {
    return numpy(Vector<std::int64_t>{s.kernel_evaluations, s.process, s.reprocess, s.inserted,
                                      s.removed, s.cache_hits, s.cache_misses, s.sampled,
                                      s.chosen});
}
nb::ndarray<nb::numpy, double> seconds_of(const Stats& s) {
    return numpy(Vector<double>{s.product_seconds, s.learn_seconds, s.finish_seconds});
}

// Values of the members' places, at [c * members + s] for problem c and member s.
template <class V, class T, class F>
nb::ndarray<nb::numpy, V> by_place(const Dual<T>& D, V absent, F value) {
    const Index n = D.size(), problems = D.problems();
    Vector<V> out(problems * n, absent);
    for (Index c = 0; c < problems; ++c)
        for (Index s = 0; s < n; ++s)
            if (const Index k = D.subproblems[c].place[s]; k != kNone)
                out[c * n + s] = static_cast<V>(value(D.subproblems[c].P, k));
    return numpy(out.data(), {problems, n});
}

template <class T>
State export_state(const Model<T>& L) {
    const Dual<T>& D = L.D;
    State out = export_features(D.members);
    out["ids"] = numpy(D.members.ids);
    out["labels"] = numpy(D.label);
    out["costs"] = numpy(D.cost);
    out["alpha"] = by_place<double>(D, 0.0, [](const Problem& P, Index k) { return P.alpha[k]; });
    out["g"] = by_place<double>(D, 0.0, [](const Problem& P, Index k) { return P.g[k]; });
    out["rank"] = by_place<std::int64_t>(D, -1, [](const Problem&, Index k) { return k; });
    out["box"] = by_place<std::uint8_t>(D, 0, [](const Problem& P, Index k) { return P.box[k]; });
    out["trail"] =
        by_place<double>(D, 0.0, [](const Problem& P, Index k) { return P.average_offset[k]; });
    Vector<double> notes;
    for (Index c = 0; c < D.problems(); ++c)
        for (const double note : L.extra_state(c)) notes.push_back(note);
    out["notes"] = numpy(notes.data(), {D.problems(), notes.size() / D.problems()});
    out["counters"] = counters_of(D.stats);
    out["seconds"] = seconds_of(D.stats);
    return out;
}

template <class T>
void restore(Model<T>& L, const BoundBatch& batch, const State& state) {
    const auto rank = nb::cast<Array2<std::int64_t>>(state["rank"]);
    const auto alpha = nb::cast<Array2<double>>(state["alpha"]);
    const auto g = nb::cast<Array2<double>>(state["g"]);
    const auto average_offset = nb::cast<Array2<double>>(state["trail"]);
    const auto box = nb::cast<Array2<std::uint8_t>>(state["box"]);
    const auto notes = nb::cast<Array2<double>>(state["notes"]);
    const auto counters = nb::cast<Array1<std::int64_t>>(state["counters"]);
    const auto seconds = nb::cast<Array1<double>>(state["seconds"]);
    const Index n = rows_of(batch.batch.X), problems = L.D.problems();
    const auto fits = [&](const auto& array, Index columns) {
        return length(array.shape(0)) == problems && length(array.shape(1)) == columns;
    };
    require(
        fits(rank, n) && fits(alpha, n) && fits(g, n) && fits(average_offset, n) && fits(box, n),
        "what is kept by place must be problems x members");
    require(fits(notes, L.extra_state(0).size()) && counters.shape(0) == 9 && seconds.shape(0) == 3,
            "notes and counters do not fit");
    Vector<Example> examples;
    for (Index s = 0; s < n; ++s)
        examples.push_back({batch.batch.ids[s], batch.batch.label[s], batch.batch.cost[s]});
    L.D.restore(batch.batch.X, examples.data(),
                {rank.data(), alpha.data(), g.data(), box.data(), average_offset.data()});
    for (Index c = 0; c < L.D.problems(); ++c)
        L.set_extra_state(c, notes.data() + c * length(notes.shape(1)));
    const std::int64_t* k = counters.data();
    const double* t = seconds.data();
    L.D.stats = {k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], k[8], t[0], t[1], t[2]};
}

// One value for each problem.
template <class V, class T, class F>
nb::ndarray<nb::numpy, V> by_problem(const Model<T>& L, F value) {
    const auto hold = reader(L);
    Vector<V> out;
    for (Index c = 0; c < L.D.problems(); ++c) out.push_back(static_cast<V>(value(c)));
    return numpy(out);
}

template <class T>
nb::ndarray<nb::numpy, double> decide(const Model<T>& L, const Sample& sample) {
    const Index n = sample.n, p = L.D.problems();
    Vector<double> out(n * p);
    {
        const Reader<T> hold(L);
        L.decision(sample, out.data());
    }
    return numpy(out.data(), {n, p});
}

// Gap, members and kernel evaluations by example and problem.
template <class T>
nb::typed<nb::tuple, nb::any, nb::any, nb::any> export_records(const Model<T>& L) {
    const auto hold = reader(L);
    const Index problems = L.D.problems();
    Vector<double> gap;
    Vector<std::int64_t> members, evaluations;
    for (const Record& record : L.records) {
        gap.push_back(record.gap);
        members.push_back(record.members);
        evaluations.push_back(record.kernel_evaluations);
    }
    const Index n = gap.size() / problems;
    return nb::make_tuple(numpy(gap.data(), {n, problems}), numpy(members.data(), {n, problems}),
                          numpy(evaluations.data(), {n, problems}));
}

template <class T>
void restore_records(Model<T>& L, Array2<double> gap, Array2<std::int64_t> members,
                     Array2<std::int64_t> evaluations) {
    const auto fits = [&](const auto& array) {
        return array.shape(0) == gap.shape(0) && length(array.shape(1)) == L.D.problems();
    };
    require(fits(gap) && fits(members) && fits(evaluations), "records must be rows x problems");
    const auto hold = writer(L);
    L.records.clear();
    for (Index i = 0; i < length(gap.size()); ++i)
        L.records.push_back({gap.data()[i], members.data()[i], evaluations.data()[i]});
}

// The largest violation at which a loop gave up since the last call, by problem, and what can be
// told from rounding there.
template <class T>
nb::typed<nb::tuple, nb::any, nb::any> take_unsolved(Model<T>& L) {
    const auto hold = writer(L);
    Vector<double> violations, resolutions;
    for (Subproblem& sub : L.D.subproblems) {
        violations.push_back(std::exchange(sub.P.unsolved, 0.0));
        resolutions.push_back(violations.back() > 0 ? resolution(sub.P) : 0.0);
    }
    return nb::make_tuple(numpy(violations), numpy(resolutions));
}

// The learner of an algorithm, with its settings by name.
template <class T>
std::unique_ptr<Model<T>> make_learner(const std::string& algorithm, const State& settings,
                                       Dual<T> dual, ModelSettings common) {
    const auto real = [&](const char* name) { return nb::cast<double>(settings[name]); };
    const auto whole = [&](const char* name) { return nb::cast<Index>(settings[name]); };
    const auto flag = [&](const char* name) { return nb::cast<bool>(settings[name]); };
    if (algorithm == "lasvm")
        return std::make_unique<Lasvm<T>>(std::move(dual), std::move(common),
                                          LasvmSettings{real("tol"), whole("reprocess"),
                                                        flag("reprocess_each"), real("delta_max")});
    if (algorithm == "gap")
        return std::make_unique<Gap<T>>(
            std::move(dual), std::move(common),
            GapSettings{real("tol"), static_cast<Loss>(whole("loss")), real("ramp"),
                        whole("clean_every"), whole("max_idle")});
    if (algorithm == "tracking")
        return std::make_unique<Tracking<T>>(
            std::move(dual), std::move(common),
            TrackingSettings{whole("steps"), flag("process"), flag("average"), flag("support_only"),
                             nb::cast<std::uint64_t>(settings["seed"])});
    if (algorithm == "exact_ramp")
        return std::make_unique<ExactRamp<T>>(std::move(dual), std::move(common),
                                              ExactRampSettings{real("tol"), whole("max_idle")});
    require(algorithm == "perceptron", "unknown algorithm");
    return std::make_unique<Perceptron<T>>(
        std::move(dual), std::move(common),
        PerceptronSettings{real("margin"), whole("budget"), flag("average"), flag("aggressive")});
}

// The state of an exact model: with S by problem, one slot after the other, and its factors.
State export_exact(const Exact& L) {
    State out = export_state<double>(L);
    Vector<std::int64_t> sizes, members;
    Vector<double> factors;
    for (Index c = 0; c < L.D.problems(); ++c) {
        const FreeSet& M = L.free_set_of(c);
        sizes.push_back(M.place.size());
        for (const Index k : M.place)
            members.push_back(k == kNone ? kNone : Index(L.D.subproblems[c].member[k]));
        const Vector<double> packed = M.factor.packed();
        factors.insert(factors.end(), packed.begin(), packed.end());
    }
    out["slots"] = numpy(sizes);
    out["margin"] = numpy(members);
    out["factor"] = numpy(factors);
    return out;
}

void restore_exact(Exact& L, const BoundBatch& batch, const State& state) {
    restore<double>(L, batch, state);
    const auto sizes = nb::cast<Array1<std::int64_t>>(state["slots"]);
    const auto members = nb::cast<Array1<std::int64_t>>(state["margin"]);
    const auto factors = nb::cast<Array1<double>>(state["factor"]);
    require(length(sizes.shape(0)) == L.D.problems(), "one size a problem");
    Index member = 0, value = 0;
    for (Index c = 0; c < L.D.problems(); ++c) {
        const Index n = sizes.data()[c], entries = Factor::packed_size(n);
        require(n >= 0 && member + n <= length(members.shape(0)) &&
                    value + entries <= length(factors.shape(0)),
                "margins and factors do not fit");
        const std::int64_t* from = members.data() + member;
        L.set_free_set(c, {from, from + n}, factors.data() + value);
        member += n;
        value += entries;
    }
}

// Cause, example, problem, and from where to where, of each migration.
nb::ndarray<nb::numpy, std::int64_t> export_path(const Exact& L) {
    const auto hold = reader(L);
    Vector<std::int64_t> out;
    for (const Migration& m : L.path)
        for (const std::int64_t value :
             {m.cause, m.id, std::int64_t(m.problem), static_cast<std::int64_t>(m.from),
              static_cast<std::int64_t>(m.to)})
            out.push_back(value);
    return numpy(out.data(), {out.size() / 5, 5});
}
void restore_path(Exact& L, Array2<std::int64_t> path) {
    require(path.shape(1) == 5, "a migration has five parts");
    const auto hold = writer<double>(L);
    L.path.clear();
    for (const std::int64_t* m = path.data(); m != path.data() + path.size(); m += 5)
        L.path.push_back({m[0], m[1], Index(m[2]), Set(m[3]), Set(m[4])});
}

// Rows packed into tiles, for expansions over them.
template <class T>
struct PackedRows {
    Members<T> rows;

    explicit PackedRows(Members<T> rows_) : rows(std::move(rows_)) {}
    PackedRows(PackedRows&&) = default;
    PackedRows(const PackedRows&) = delete;
};

Sample sample_of(const BoundBatch& batch, const Array1<std::int64_t>& rows) {
    const Sample sample(batch.batch.X, rows.data(), length(rows.shape(0)));
    for (Index r = 0; r < sample.n; ++r)
        require(sample.order[r] >= 0 && sample.order[r] < rows_of(sample.X),
                "a row is outside the batch");
    return sample;
}

// What compute(sample, out) writes for some rows of a batch: `columns` values a row.
template <class T, class F>
nb::ndarray<nb::numpy, float> roughly(const Model<T>& self, const BoundBatch& batch,
                                      const Array1<std::int64_t>& rows, Index columns, F compute) {
    require(!self.D.kernel.is_callable(), "a kernel that is a function has no rough values");
    const Sample sample = sample_of(batch, rows);
    float* out = new float[size_of(sample.n * columns + 1)];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    {
        const Reader<T> hold(self);
        compute(sample, out);
    }
    const std::size_t shape[] = {size_of(sample.n), size_of(columns)};
    return nb::ndarray<nb::numpy, float>(out, 2, shape, owner);
}

template <class T>
void bind_learner(nb::module_& m, const char* name, const char* packed) {
    using L = Model<T>;
    nb::class_<PackedRows<T>>(m, packed);
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_model<T>)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&clear_model<T>)},
                                  {0, nullptr}};
    nb::class_<L>(m, name, nb::type_slots(slots))
        .def(nb::new_([](const std::string& algorithm, const State& settings, const Kernel& kernel,
                         nb::object callable, Index problems, Index features, bool sparse,
                         bool biased, Index cache_bytes, Vector<double> center, double scale,
                         double norm_limit, Index threads, bool record) {
                 return make_learner<T>(algorithm, settings,
                                        Dual<T>(Members<T>(features, sparse),
                                                KernelBlocks<T>(kernel, block_kernel(callable)),
                                                problems, cache_bytes, biased),
                                        {{std::move(center), scale}, norm_limit, threads, record});
             }),
             nb::arg("algorithm"), nb::arg("settings"), nb::arg("kernel"),
             nb::arg("callable").none(), nb::arg("problems"), nb::arg("features"),
             nb::arg("sparse"), nb::arg("biased"), nb::arg("cache_bytes"), nb::arg("center"),
             nb::arg("scale"), nb::arg("norm_limit"), nb::arg("threads"), nb::arg("record"))
        .def(
            "learn",
            [](L& self, const BoundBatch& batch, Array1<std::int64_t> order, double seconds) {
                return interruptible(self, [&] {
                    return self.learn(batch.batch, order.data(), length(order.shape(0)), seconds);
                });
            },
            nb::arg("batch"), nb::arg("order"), nb::arg("seconds"))
        .def(
            "learn_wanted",
            [](L& self, const BoundBatch& batch, Array1<std::int64_t> order,
               Array2<std::uint8_t> wanted, double seconds) {
                require(wanted.shape(0) == order.shape(0) &&
                            length(wanted.shape(1)) == self.D.problems(),
                        "wanted must be rows x problems");
                return interruptible(self, [&] {
                    return self.learn_wanted(batch.batch, order.data(), wanted.data(),
                                             length(order.shape(0)), seconds);
                });
            },
            nb::arg("batch"), nb::arg("order"), nb::arg("wanted").noconvert(), nb::arg("seconds"))
        .def(
            "begin_pass",
            [](L& self, const std::string& rule, Index pool_size, Flags seen) {
                require(length(seen.shape(0)) == self.D.problems(), "one row of flags a problem");
                const auto hold = writer(self);
                self.begin_pass({rule_named(rule), pool_size}, seen.data(), length(seen.shape(1)));
            },
            nb::arg("rule"), nb::arg("pool_size"), nb::arg("seen").noconvert(),
            nb::keep_alive<1, 4>())
        .def(
            "select",
            [](L& self, const BoundBatch& batch, Array1<std::int64_t> order, double seconds) {
                return interruptible(self, [&] {
                    return self.select(batch.batch, order.data(), length(order.shape(0)), seconds);
                });
            },
            nb::arg("batch"), nb::arg("order"), nb::arg("seconds"))
        .def("end_pass",
             [](L& self) {
                 const Writer<T> hold(self);
                 self.end_pass();
             })
        .def(
            "finish",
            [](L& self, double tol, double seconds) {
                return interruptible(self, [&] { return self.finish(tol, seconds); });
            },
            nb::arg("tol"), nb::arg("seconds"))
        .def("settle",
             [](L& self) {
                 const Writer<T> hold(self);
                 self.end_finish();
             })
        .def("clone",
             [](const L& self) {
                 const auto hold = reader(self);
                 return self.clone();
             })
        .def(
            "decision",
            [](const L& self, const BoundBatch& batch) { return decide(self, batch.batch.X); },
            nb::arg("batch"))
        .def(
            "decision_of",
            [](const L& self, const BoundBatch& batch, Array1<std::int64_t> rows) {
                return decide(self, sample_of(batch, rows));
            },
            nb::arg("batch"), nb::arg("rows").noconvert())
        .def(
            "rough_decision",
            [](const L& self, const BoundBatch& batch, Array1<std::int64_t> rows) {
                return roughly(
                    self, batch, rows, self.D.problems(),
                    [&](const Sample& sample, float* out) { self.rough_decision(sample, out); });
            },
            nb::arg("batch"), nb::arg("rows").noconvert())
        .def(
            "rough_decision_where",
            [](const L& self, const BoundBatch& batch, Array2<std::uint8_t> asked,
               nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
                const bool fits = length(asked.shape(0)) == rows_of(batch.batch.X) &&
                                  length(asked.shape(1)) == self.D.problems();
                require(fits && out.shape(0) == asked.shape(0) && out.shape(1) == asked.shape(1),
                        "asked and out must be rows x problems");
                const Reader<T> hold(self);
                self.rough_decision_where(batch.batch.X, asked.data(), out.data());
            },
            nb::arg("batch"), nb::arg("asked").noconvert(), nb::arg("out").noconvert())
        .def(
            "rough_expansion",
            [](const L& self, const PackedRows<T>& centres, Array2<double> coefficients,
               Array1<double> bias, const BoundBatch& batch, Array1<std::int64_t> rows) {
                const Index problems = length(coefficients.shape(0)), n = centres.rows.size();
                require(length(coefficients.shape(1)) == n && length(bias.shape(0)) == problems,
                        "coefficients must be problems x centres, and a bias each");
                Vector<Array<double>> weight;
                for (Index c = 0; c < problems; ++c)
                    weight.emplace_back(coefficients.data() + c * n,
                                        coefficients.data() + (c + 1) * n);
                const RoughWeights weights(weight, {bias.data(), bias.data() + problems}, n);
                return roughly(self, batch, rows, problems, [&](const Sample& sample, float* out) {
                    self.rough_expansion(centres.rows, weights, sample, out);
                });
            },
            nb::arg("centres"), nb::arg("coefficients").noconvert(), nb::arg("bias").noconvert(),
            nb::arg("batch"), nb::arg("rows").noconvert())
        .def(
            "cross_values",
            [](const L& self, const PackedRows<T>& centres, const BoundBatch& batch,
               Array1<std::int64_t> rows) {
                return roughly(self, batch, rows, centres.rows.size(),
                               [&](const Sample& sample, float* out) {
                                   self.cross_values(centres.rows, sample, out);
                               });
            },
            nb::arg("centres"), nb::arg("batch"), nb::arg("rows").noconvert())
        .def(
            "lay_out",
            [](const L& self, const BoundBatch& batch) {
                const Reader<T> hold(self);
                return PackedRows<T>(self.pack(batch.batch.X));
            },
            nb::arg("batch"))
        .def(
            "expansion",
            [](const L& self, const BoundBatch& centres, Array2<double> coefficients,
               const PackedRows<T>& packed) {
                const Index n = packed.rows.size(), p = self.D.problems();
                require(length(coefficients.shape(0)) == p &&
                            length(coefficients.shape(1)) == rows_of(centres.batch.X),
                        "coefficients must be problems x centres");
                Vector<double> out(n * p, 0.0);
                {
                    const Reader<T> hold(self);
                    self.add_expansion(centres.batch.X, coefficients.data(), packed.rows,
                                       out.data());
                }
                return numpy(out.data(), {n, p});
            },
            nb::arg("centres"), nb::arg("coefficients").noconvert(), nb::arg("laid"))
        .def("coefficients", &export_coefficients<T>)
        .def("weights",
             [](const L& self) {
                 const auto hold = reader(self);
                 const Index n = self.D.size();
                 Vector<double> out;
                 for (Index c = 0; c < self.D.problems(); ++c) {
                     const Array<double> weight = self.output(c);
                     out.insert(out.end(), weight.begin(), weight.begin() + self.D.size());
                 }
                 return numpy(out.data(), {self.D.problems(), n});
             })
        .def(
            "check",
            [](L& self, double tolerance) {
                const Writer<T> hold(self);
                self.check(tolerance);
            },
            nb::arg("tolerance"))
        .def(
            "verify",
            [](L& self, Index most, double tolerance) {
                const Writer<T> hold(self);
                verify_gradient(self.D, most, tolerance,
                                [&](Index c, Index k) { return self.D.problem(c).y(k); });
            },
            nb::arg("most"), nb::arg("tolerance"))
        .def("regrade",
             [](L& self) {
                 const Writer<T> hold(self);
                 self.D.regrade();
             })
        .def("state",
             [](const L& self) {
                 const auto hold = reader(self);
                 return export_state(self);
             })
        .def("restore", &restore<T>, nb::arg("batch"), nb::arg("state"))
        .def("records", &export_records<T>)
        .def("set_records", &restore_records<T>, nb::arg("gap").noconvert(),
             nb::arg("members").noconvert(), nb::arg("evaluations").noconvert())
        .def(
            "within_limit",
            [](const L& self, const BoundBatch& batch) { return self.within_limit(batch.batch.X); },
            nb::arg("batch"))
        .def("take_unsolved", &take_unsolved<T>)
        .def_prop_ro(
            "unsolved",
            [](const L& self) {
                const auto gave_up = [](const Subproblem& sub) { return sub.P.unsolved > 0; };
                const auto hold = reader(self);
                return std::any_of(self.D.subproblems.begin(), self.D.subproblems.end(), gave_up);
            })
        .def(
            "diagonal",
            [](const L& self, const BoundBatch& batch) {
                Vector<double> out(rows_of(batch.batch.X));
                {
                    const Reader<T> hold(self);
                    self.diagonal(batch.batch.X, out.data());
                }
                return numpy(out);
            },
            nb::arg("batch"))
        .def("bias",
             [](const L& self) {
                 return by_problem<double>(self,
                                           [&](Index c) { return self.D.subproblems[c].P.bias(); });
             })
        .def("delta",
             [](const L& self) {
                 return by_problem<double>(self, [&](Index c) { return self.slack(c); });
             })
        .def("judges",
             [](const L& self) {
                 return by_problem<std::uint8_t>(self, [&](Index c) { return self.judges(c); });
             })
        .def("objective",
             [](const L& self) {
                 return by_problem<double>(self, [&](Index c) { return self.objective(c); });
             })
        .def("penalty",
             [](const L& self) {
                 return by_problem<double>(self, [&](Index c) { return self.D.penalty(c); });
             })
        .def("duality_gap",
             [](const L& self) {
                 return by_problem<double>(self, [&](Index c) { return self.D.duality_gap(c); });
             })
        .def("counters",
             [](const L& self) {
                 const auto hold = reader(self);
                 return counters_of(self.D.stats);
             })
        .def("seconds",
             [](const L& self) {
                 const auto hold = reader(self);
                 return seconds_of(self.D.stats);
             })
        .def(
            "reserve_ids",
            [](L& self, std::int64_t next) {
                const auto hold = writer(self);
                self.next_id = std::max(self.next_id, next);
            },
            nb::arg("next"))
        .def(
            "count_since_finish",
            [](L& self, std::int64_t count) {
                const auto hold = writer(self);
                self.since_finish = count;
            },
            nb::arg("count"))
        .def_prop_ro("changes", [](const L& self) { return self.guard.changes(); })
        .def_prop_ro("next_id", [](const L& self) { return reader(self), self.next_id; })
        .def_prop_ro("since_finish", [](const L& self) { return reader(self), self.since_finish; })
        .def_prop_ro("beyond", [](const L& self) { return reader(self), self.beyond(); })
        .def_prop_ro("size", [](const L& self) { return reader(self), self.D.size(); })
        .def_prop_ro("bytes", [](const L& self) { return reader(self), self.D.members.bytes(); });
}

void bind_exact(nb::module_& m) {
    nb::class_<Exact, Model<double>>(m, "ExactLearner")
        .def(
            nb::new_([](const State& settings, const Kernel& kernel, nb::object callable,
                        Index problems, Index features, bool sparse, Index cache_bytes,
                        Vector<double> center, double scale, Index threads, bool record) {
                const ExactSettings own{
                    nb::cast<bool>(settings["sphere"]),  nb::cast<double>(settings["nu"]),
                    nb::cast<Index>(settings["window"]), nb::cast<bool>(settings["oldest"]),
                    nb::cast<bool>(settings["screen"]),  record};
                return std::make_unique<Exact>(
                    Dual<double>(Members<double>(features, sparse),
                                 KernelBlocks<double>(kernel, block_kernel(callable)), problems, 0),
                    ModelSettings{{std::move(center), scale}, 1e300, threads, record}, own,
                    cache_bytes);
            }),
            nb::arg("settings"), nb::arg("kernel"), nb::arg("callable").none(), nb::arg("problems"),
            nb::arg("features"), nb::arg("sparse"), nb::arg("cache_bytes"), nb::arg("center"),
            nb::arg("scale"), nb::arg("threads"), nb::arg("record"))
        .def(
            "forget",
            [](Exact& self, Array1<std::int64_t> ids) {
                interruptible<double>(self, [&] {
                    self.forget(ids.data(), length(ids.shape(0)));
                    return true;
                });
            },
            nb::arg("ids"))
        .def("leave_one_out",
             [](Exact& self) {
                 const Index n = self.D.size(), p = self.D.problems();
                 Vector<double> out(n * p);
                 interruptible<double>(self, [&] {
                     self.leave_one_out(out.data());
                     return true;
                 });
                 return numpy(out.data(), {n, p});
             })
        .def(
            "scale_costs",
            [](Exact& self, double factor) {
                interruptible<double>(self, [&] {
                    self.scale_costs(factor);
                    return true;
                });
            },
            nb::arg("factor"))
        .def(
            "holds",
            [](const Exact& self, Array1<std::int64_t> ids) {
                const auto hold = reader<double>(self);
                Vector<std::uint8_t> out;
                for (Index i = 0; i < length(ids.shape(0)); ++i)
                    out.push_back(self.D.members.find(ids.data()[i]) != kNone);
                return numpy(out);
            },
            nb::arg("ids"))
        .def("path", &export_path)
        .def("set_path", &restore_path, nb::arg("path").noconvert())
        .def("violation",
             [](const Exact& self) {
                 return by_problem<double>(self, [&](Index c) { return self.violation(c); });
             })
        .def("solve",
             [](Exact& self) {
                 interruptible<double>(self, [&] {
                     self.solve();
                     return true;
                 });
             })
        .def("shortfall",
             [](const Exact& self) {
                 return by_problem<double>(self, [&](Index c) { return self.shortfall(c); });
             })
        .def("resolved",
             [](const Exact& self) {
                 return by_problem<std::int64_t>(
                     self, [&](Index c) { return self.free_set_of(c).resolved; });
             })
        .def("indefinite",
             [](const Exact& self) {
                 return by_problem<std::uint8_t>(
                     self, [&](Index c) { return self.free_set_of(c).indefinite; });
             })
        .def("total",
             [](const Exact& self) {
                 return by_problem<double>(self,
                                           [&](Index c) { return self.free_set_of(c).total; });
             })
        .def(
            "verify_exact",
            [](Exact& self, Index most, double tolerance, bool sphere) {
                const Writer<double> hold(self);
                verify_gradient(self.D, most, tolerance, [&](Index c, Index k) {
                    const Problem& P = self.D.problem(c);
                    const double half = self.free_set_of(c).total / 2;
                    return sphere ? half * P.diagonal[k] : P.y(k);
                });
            },
            nb::arg("most"), nb::arg("tolerance"), nb::arg("sphere"))
        .def("state",
             [](const Exact& self) {
                 const auto hold = reader<double>(self);
                 return export_exact(self);
             })
        .def("restore", &restore_exact, nb::arg("batch"), nb::arg("state"));
}

using Array3 = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Images = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void deform_images(Array2<float> images, Array3 tangents, Array2<float> ranges,
                   Array2<float> fields, Vector<Index> shape, double elastic, double thickening,
                   Index shift, std::uint64_t seed, Array1<std::int64_t> examples,
                   Array1<std::int64_t> variants, Index threads, Images out) {
    require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[2] > 0,
            "a shape has height, width and channels");
    const Shape size{shape[0], shape[1], shape[2]};
    const std::size_t n = images.shape(0), d = size_of(size.size());
    require(images.shape(1) == d && fields.shape(1) == d && out.shape(1) == d &&
                tangents.shape(0) == 2 && tangents.shape(1) == n && tangents.shape(2) == d,
            "images, tangents, fields and out must have the size of the shape");
    require(ranges.shape(0) == 2 && ranges.shape(1) == n, "an image has a least and a greatest");
    require(fields.shape(0) > 0 && shift >= 0, "a field at least, and no negative shift");
    require(examples.shape(0) == out.shape(0) && variants.shape(0) == out.shape(0),
            "an example and a variant for each image to write");
    for (Index r = 0; r < length(out.shape(0)); ++r)
        require(
            examples.data()[r] >= 0 && examples.data()[r] < length(n) && variants.data()[r] >= 0,
            "no such image");
    const Originals originals{images.data(), tangents.data(),   tangents.data() + n * d,
                              ranges.data(), ranges.data() + n, length(n)};
    const Deformer deformer(size, {elastic, thickening, shift},
                            {fields.data(), length(fields.shape(0))}, seed);
    nb::gil_scoped_release released;
    deformer.deform(originals, examples.data(), variants.data(), length(out.shape(0)), threads,
                    out.data());
}

// A call that waits for its turn. All of this happens in one native call: an interrupt may come
// before the turn is taken, or within the function, but not between taking it and giving it back.
nb::object run_in_turn(Turn& turn, nb::callable function, nb::args args, nb::kwargs kwargs) {
    struct Holder {
        explicit Holder(Turn& turn_) : turn(turn_) {
            nb::gil_scoped_release released;
            turn.take([] {
                nb::gil_scoped_acquire held;
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
            });
        }
        ~Holder() { turn.give_back(); }
        Turn& turn;
    };
    const Holder holder(turn);
    return function(*args, **kwargs);
}

template <class V>
void bind_matrix(nb::class_<BoundBatch>& c) {
    c.def(
        "__init__",
        [](BoundBatch* self, Array2<V> X) {
            new (self) BoundBatch{{BoundBatch::dense(X)}, nb::cast(X)};
        },
        nb::arg("X").noconvert());
    c.def(
        "__init__",
        [](BoundBatch* self, Array1<V> data, Array1<std::int32_t> indices,
           Array1<std::int64_t> indptr, Index cols) {
            new (self) BoundBatch{{BoundBatch::csr(data, indices, indptr, cols)},
                                  nb::make_tuple(data, indices, indptr)};
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
        nb::arg("cols"));
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native core of marginwise: kernel blocks, the dual state and its learners.";
    m.def(
        "cpu", [] { return std::string(table().name); },
        "Instruction set in use (MARGINWISE_CPU chooses another).");
    m.def("cpu_choices", &cpu_choices, "Instruction sets that this processor offers.");

    m.def(
        "product_seconds",
        [](Array2<float> X, Array2<float> members, double gamma, bool lists) {
            nb::gil_scoped_release released;
            return product_seconds(std::get<0>(BoundBatch::dense(X)),
                                   std::get<0>(BoundBatch::dense(members)), gamma, lists);
        },
        nb::arg("X").noconvert(), nb::arg("members").noconvert(), nb::arg("gamma"),
        nb::arg("lists"), "Time the RBF kernel of all rows of X with all members, in blocks.");

    m.def(
        "sensitivity_seconds",
        [](Array2<double> rows, Array1<std::int64_t> free, Index rounds, bool gather) {
            require(rows.shape(0) == free.shape(0) && rounds > 0, "one row a free example");
            for (Index i = 0; i < length(free.shape(0)); ++i)
                require(free.data()[i] >= 0 && free.data()[i] < length(rows.shape(1)),
                        "a free example has no column");
            nb::gil_scoped_release released;
            return sensitivity_seconds(std::get<1>(BoundBatch::dense(rows)), free.data(), rounds,
                                       gather);
        },
        nb::arg("rows").noconvert(), nb::arg("free").noconvert(), nb::arg("rounds"),
        nb::arg("gather"),
        "Time the sensitivities of all examples to the free ones, in two forms.");

    m.def("deform", &deform_images, nb::arg("images").noconvert(), nb::arg("tangents").noconvert(),
          nb::arg("ranges").noconvert(), nb::arg("fields").noconvert(), nb::arg("shape"),
          nb::arg("elastic"), nb::arg("thickening"), nb::arg("shift"), nb::arg("seed"),
          nb::arg("examples").noconvert(), nb::arg("variants").noconvert(), nb::arg("threads"),
          nb::arg("out").noconvert(),
          "Write variants of some images to out; variant 0 is the image itself.");

    nb::class_<Kernel>(m, "Kernel")
        .def(
            "__init__",
            [](Kernel* self, const std::string& kind, double gamma, double coef0, int degree) {
                new (self) Kernel{kind_named(kind), gamma, coef0, degree};
            },
            nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"));

    nb::class_<Turn>(m, "Turn")
        .def(nb::init<>())
        .def("run", &run_in_turn, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"),
             nb::sig("def run(self, function: collections.abc.Callable[..., Any], /, *args: Any, "
                     "**kwargs: Any)"
                     " -> Any"))
        .def_prop_ro("mine", &Turn::mine);

    nb::class_<BoundBatch> batch(m, "Batch");
    bind_matrix<float>(batch);
    bind_matrix<double>(batch);
    batch.def("label", &BoundBatch::label, nb::arg("labels").noconvert(),
              nb::arg("costs").noconvert(), nb::arg("ids").noconvert());

    bind_learner<float>(m, "Learner32", "Laid32");
    bind_learner<double>(m, "Learner64", "Laid64");
    bind_exact(m);
}
