// All algorithms by name.
#pragma once

#include "marginwise/algo/exact/exact.hpp"
#include "marginwise/algo/exact_ramp.hpp"
#include "marginwise/algo/fixed.hpp"
#include "marginwise/algo/gap.hpp"
#include "marginwise/algo/lasvm.hpp"
#include "marginwise/algo/perceptron.hpp"
#include "marginwise/algo/tracking.hpp"
#include "marginwise/model/spec.hpp"

namespace marginwise {

// The settings of an algorithm; read(name, field) sets each field.
template <class Settings, class Read>
Settings settings_by(Read read) {
    Settings settings;
    settings.visit(read);
    return settings;
}

template <class A, class T, class Read>
std::unique_ptr<Model<T>> make(const ModelSpec& spec, Read read) {
    return std::make_unique<A>(spec.dual<T>(spec.cache_bytes), spec.common,
                               settings_by<typename A::Settings>(read));
}

// A model that learns one example at a time.
template <class T, class Read>
std::unique_ptr<Model<T>> make_learner(const ModelSpec& spec, Read read) {
    if (spec.algorithm == "lasvm") return make<Lasvm<T>, T>(spec, read);
    if (spec.algorithm == "gap") return make<Gap<T>, T>(spec, read);
    if (spec.algorithm == "tracking") return make<Tracking<T>, T>(spec, read);
    if (spec.algorithm == "exact_ramp") return make<ExactRamp<T>, T>(spec, read);
    if (spec.algorithm == "perceptron") return make<Perceptron<T>, T>(spec, read);
    if (spec.algorithm == "fixed") return make<Fixed<T>, T>(spec, read);
    throw std::invalid_argument("unknown algorithm");
}

template <class Read>
std::unique_ptr<Exact> make_exact(const ModelSpec& spec, Read read) {
    auto settings = settings_by<ExactSettings>(read);
    settings.record = spec.common.record;
    return std::make_unique<Exact>(spec.dual<double>(0), spec.common, settings, spec.cache_bytes);
}

}  // namespace marginwise
