// A learner and the stream it learns from, for the tests of the dual and of LASVM.
#pragma once

#include <memory>
#include <string>

#include "marginwise/algo/lasvm.hpp"
#include "marginwise/model/state.hpp"
#include "toy.hpp"

namespace toy {

using namespace marginwise;

struct Options {
    Index classes = 2;
    Kernel kernel{KernelKind::rbf, 1.0, 0.5, 2};
    BlockKernel callable{};  // the kernel, if its kind is that
    bool sparse = false;
    bool csr = false;
    double C = 2.0;
    double size = 1.0;  // of the features
    Index cache_bytes = 1 << 20;
    LasvmSettings settings{};
    double norm_limit = 1e300;
    Index threads = 1;
};

// Labelled rows around the origin: class by the signs of the first two features, one in ten wrong.
struct Stream {
    Data<double> data;
    Vector<std::int32_t> label;
    Vector<double> cost;
    Vector<std::int64_t> ids;

    Stream(Index n, const Options& options, std::uint64_t seed = 1)
        : data(n, 3, options.csr ? 0.5 : 1.0, seed), cost(n, options.C), ids(ascending(n)) {
        Random random(seed + 1);
        for (double& x : data.dense) x *= options.size;
        for (double& x : data.values) x *= options.size;
        for (Index r = 0; r < n; ++r) {
            const double* x = data.row(r);
            const Index known = x[0] > 0 ? (options.classes > 2 && x[1] > 0 ? 2 : 1) : 0;
            const Index any = random.below(options.classes);
            label.push_back(static_cast<std::int32_t>(random.uniform() < 0.1 ? any : known));
        }
    }
    Batch batch(bool csr) const {
        return {csr ? data.csr() : data.view(), label.data(), cost.data(), ids.data()};
    }
};

template <class T>
struct Pupil {
    Options options;
    Stream stream;
    std::unique_ptr<Lasvm<T>> lasvm;

    Pupil(Index n, const Options& options_) : options(options_), stream(n, options_) {
        lasvm = fresh();
    }

    std::unique_ptr<Lasvm<T>> fresh() const {
        return std::make_unique<Lasvm<T>>(
            Dual<T>(Members<T>(3, options.sparse),
                    KernelBlocks<T>(options.kernel, options.callable),
                    options.classes == 2 ? 1 : options.classes, options.cache_bytes),
            ModelSettings{{}, options.norm_limit, options.threads, false}, options.settings);
    }

    // Learns rows [begin, end) in one call.
    Index learn(Index begin, Index end, double seconds = 1e9) {
        const Vector<std::int64_t> order = ascending(end);
        return lasvm->learn(stream.batch(options.csr), order.data() + begin, end - begin, seconds);
    }

    // The same with a look ahead; `distance` is of all rows.
    Index look_ahead(Index begin, Index end, Vector<float>& distance, double seconds = 1e9,
                     bool roughly = true) {
        const Vector<std::int64_t> order = ascending(end);
        return lasvm->learn_ahead(stream.batch(options.csr), order.data() + begin, end - begin,
                                  {roughly, distance.data()}, seconds);
    }

    bool adopt(Index n) { return lasvm->adopt(stream.batch(options.csr), ascending(n).data(), n); }

    Dual<T>& D() { return lasvm->D; }
    Problem& P(Index c = 0) { return lasvm->D.problem(c); }
};

// The members of a state, as a model that is restored reads them.
template <class T>
Batch members_of(const State<T>& state, Index features) {
    Batch batch;
    if (state.sparse)
        batch.X = CsrView<T>{state.data.data(), state.indices.data(), state.indptr.data(),
                             state.ids.size(), features};
    else
        batch.X = DenseView<T>{state.X.values.data(), state.X.rows, state.X.cols};
    batch.label = state.labels.data();
    batch.cost = state.costs.data();
    batch.ids = state.ids.data();
    return batch;
}

// What a model is: by problem and member, alpha and g, in the order of positions.
template <class T>
struct Essence {
    Vector<std::int64_t> ids;
    Vector<double> numbers;

    explicit Essence(const Dual<T>& D) {
        for (const Subproblem& sub : D.subproblems) {
            for (Index k = 0; k < sub.P.size; ++k) {
                if (!sub.P.open[k]) continue;
                ids.push_back(D.members.ids[Index(sub.member[k])]);
                numbers.push_back(sub.P.alpha[k]);
                numbers.push_back(sub.P.g[k]);
            }
            numbers.push_back(sub.P.bias());
        }
    }
    bool operator==(const Essence& other) const {
        return ids == other.ids && numbers == other.numbers;
    }
};

}  // namespace toy

// All that is instantiated for these learners is compiled once, in toy_float.cpp and
// toy_double.cpp; the programs compile only their own code.
#define TOY_LEARNERS(T, ...)                                                           \
    namespace marginwise {                                                             \
    __VA_ARGS__ template class Members<T>;                                             \
    __VA_ARGS__ template class KernelBlocks<T>;                                        \
    __VA_ARGS__ template class Dual<T>;                                                \
    __VA_ARGS__ template class Budget<T>;                                              \
    __VA_ARGS__ template class BlockProduct<T>;                                        \
    __VA_ARGS__ template class Model<T>;                                               \
    __VA_ARGS__ template class Learner<T>;                                             \
    __VA_ARGS__ template class Lasvm<T>;                                               \
    __VA_ARGS__ template State<T> save_state(const Model<T>&);                         \
    __VA_ARGS__ template void restore_state(Model<T>&, const Batch&, const State<T>&); \
    }                                                                                  \
    namespace toy {                                                                    \
    __VA_ARGS__ template struct Pupil<T>;                                              \
    __VA_ARGS__ template struct Essence<T>;                                            \
    }

TOY_LEARNERS(float, extern)
TOY_LEARNERS(double, extern)
