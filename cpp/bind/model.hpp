// What the models of all algorithms need to be made, and to be stored.
#pragma once

#include "function_kernel.hpp"
#include "locking.hpp"
#include "marginwise/model/report.hpp"

using namespace marginwise;
using nb::literals::operator""_a;

// Settings, and the arrays of a state, by name.
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

// The settings of an algorithm.
template <class Settings>
Settings settings_from(const Dict& values) {
    Settings settings;
    settings.visit([&](const char* name, auto& field) {
        using V = std::decay_t<decltype(field)>;
        if constexpr (std::is_enum_v<V>)
            field = static_cast<V>(nb::cast<int>(values[name]));
        else
            field = nb::cast<V>(values[name]);
    });
    return settings;
}

template <class M, class Save>
Dict dict_of(const M& model, Save save) {
    auto state = Reading::run(model, [&] { return save(model); });
    Dict out;
    const auto add = [&](const char* name, auto& array) { out[name] = nb::cast(std::move(array)); };
    state.visit_members(add);
    state.visit_values(add);
    return out;
}

template <class T, class M, auto restore_state>
void restore(M& model, const Batch& batch, const Dict& arrays) {
    State<T> state;
    state.exact = !std::is_same_v<M, Model<T>>;
    state.visit_values([&](const char* name, auto& array) { read_array(arrays[name], array); });
    Writing::run(model, [&] { restore_state(model, batch, state); });
}
