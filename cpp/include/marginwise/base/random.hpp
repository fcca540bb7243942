// Counter-based random numbers: each is a hash of a seed and of its use.
#pragma once

#include <cstdint>

#include "marginwise/base/arrays.hpp"

namespace marginwise {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
inline constexpr std::uint64_t kMultiplier = 0xbf58476d1ce4e5b9u;

// The output function of SplitMix64 [steele2014].
inline std::uint64_t splitmix64(std::uint64_t z) {
    z = (z ^ (z >> 30)) * kMultiplier;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Maps 64 random bits to a number in 0 .. n - 1. The bias is below n / 2^64.
inline Index scale_below(std::uint64_t bits, Index n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<Index>((Wide{bits} * static_cast<std::uint64_t>(n)) >> 64);
}

}  // namespace marginwise
