// Selects the table of the best instruction set that this processor supports, or of the one that
// MARGINWISE_CPU=baseline|avx2|avx512 requests.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "marginwise/simd/table.hpp"

namespace marginwise {

// Names of the instruction sets that are both compiled in and supported here, weakest first.
inline std::vector<std::string> cpu_choices() {
    std::vector<std::string> names{"baseline"};
#ifdef MARGINWISE_HAS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) names.push_back("avx2");
#endif
#ifdef MARGINWISE_HAS_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        names.push_back("avx512");
#endif
    return names;
}

inline simd::Table table_named(const std::string& name) {
    for (const std::string& known : cpu_choices()) {
        if (known != name) continue;
#ifdef MARGINWISE_HAS_AVX512
        if (name == "avx512") return simd::avx512_table();
#endif
#ifdef MARGINWISE_HAS_AVX2
        if (name == "avx2") return simd::avx2_table();
#endif
        return simd::baseline_table();
    }
    std::string choices;
    for (const std::string& known : cpu_choices()) choices += " " + known;
    throw std::invalid_argument("MARGINWISE_CPU is '" + name +
                                "'; this processor offers:" + choices);
}

inline const simd::Table& table() {
    static const simd::Table chosen = [] {
        const char* forced = std::getenv("MARGINWISE_CPU");
        return table_named(forced && *forced ? forced : cpu_choices().back());
    }();
    return chosen;
}

}  // namespace marginwise
