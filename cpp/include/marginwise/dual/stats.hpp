// Counters of the work done.
#pragma once

#include <cstdint>

namespace marginwise {

// The work done so far; part of the saved state.
struct Stats {
    std::int64_t kernel_evaluations = 0, process = 0, reprocess = 0, inserted = 0, removed = 0,
                 cache_hits = 0, cache_misses = 0, sampled = 0, chosen = 0, projections = 0,
                 projected = 0;
    double product_seconds = 0, learn_seconds = 0, finish_seconds = 0;

    // All counters, and all times, in the order of the saved state.
    template <class Self, class F>
    static void visit_counters(Self& self, F use) {
        for (auto* counter : {&self.kernel_evaluations, &self.process, &self.reprocess,
                              &self.inserted, &self.removed, &self.cache_hits, &self.cache_misses,
                              &self.sampled, &self.chosen, &self.projections, &self.projected})
            use(*counter);
    }
    template <class Self, class F>
    static void visit_seconds(Self& self, F use) {
        for (auto* time : {&self.product_seconds, &self.learn_seconds, &self.finish_seconds})
            use(*time);
    }

    // Adds the counters that each problem keeps.
    void add(const Stats& other) {
        kernel_evaluations += other.kernel_evaluations;
        reprocess += other.reprocess;
        removed += other.removed;
        cache_hits += other.cache_hits;
        cache_misses += other.cache_misses;
    }
};

}  // namespace marginwise
