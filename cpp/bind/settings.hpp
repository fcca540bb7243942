// Reading settings by name from a dict.
#pragma once

#include "function_kernel.hpp"

using Dict = nb::typed<nb::dict, nb::str, nb::any>;

inline auto reader(const Dict& values) {
    return [&values](const char* name, auto& field) {
        using V = std::decay_t<decltype(field)>;
        if constexpr (std::is_enum_v<V>)
            field = static_cast<V>(nb::cast<int>(values[name]));
        else if constexpr (std::is_same_v<V, mw::BlockKernel>)
            field = block_kernel(values[name]);
        else
            field = nb::cast<V>(values[name]);
    };
}
