// The parameters of a new model, except for the settings of its algorithm.
#pragma once

#include <string>

#include "marginwise/model/model.hpp"

namespace marginwise {

struct ModelSpec {
    std::string algorithm;
    std::string kernel;
    double coef0 = 0.0;
    int degree = 3;
    BlockKernel callable;  // the kernel if it is not native
    Index problems = 1;
    bool pairs = false;  // one-vs-one instead of one-vs-rest
    Index features = 0;
    bool sparse = false;
    bool biased = true;
    Index cache_bytes = 0;
    ModelSettings common;

    // Calls use(name, field) for all fields.
    template <class F>
    void visit(F use) {
        use("algorithm", algorithm);
        use("kernel", kernel);
        use("coef0", coef0);
        use("degree", degree);
        use("callable", callable);
        use("problems", problems);
        use("pairs", pairs);
        use("features", features);
        use("sparse", sparse);
        use("biased", biased);
        use("cache_bytes", cache_bytes);
        use("center", common.scaling.center);
        use("scale", common.scaling.scale);
        use("norm_limit", common.norm_limit);
        use("threads", common.threads);
        use("record", common.record);
        use("budget", common.budget);
        use("foresees", common.foresees);
        use("most_steps", common.most_steps);
    }

    template <class T>
    Dual<T> dual(Index row_bytes) const {
        const Kernel native{kernel_named(kernel), 1.0, coef0, degree};
        Dual<T> made(Members<T>(features, sparse), KernelBlocks<T>(native, callable), problems,
                     row_bytes, biased);
        if (pairs) made.pair_classes();
        return made;
    }
};

}  // namespace marginwise
