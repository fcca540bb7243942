// Counters of the work done.
#pragma once

#include <cstdint>

namespace marginwise {

// What has been done so far; part of the state.
struct Stats {
    std::int64_t kernel_evaluations = 0, process = 0, reprocess = 0, inserted = 0, removed = 0,
                 cache_hits = 0, cache_misses = 0, sampled = 0, chosen = 0;
    double product_seconds = 0, learn_seconds = 0, finish_seconds = 0;

    void add(const Stats& other) {
        kernel_evaluations += other.kernel_evaluations;
        reprocess += other.reprocess;
        cache_hits += other.cache_hits;
        cache_misses += other.cache_misses;
    }
};

}  // namespace marginwise
