// The table of the hot loops, compiled once per instruction set: MARGINWISE_ISA is the name of the
// set as a string, and MARGINWISE_TABLE is the function that returns its table. The loops are
// written once, with portable vector types. Contracts are in simd/table.hpp.

#include "bend.hpp"
#include "passes.hpp"
#include "passes_full.hpp"
#include "products.hpp"
#include "transform.hpp"

namespace marginwise::simd {
namespace {

template <class T>
ProductTable<T> products() {
    return {dots_dense<T>,   dots_lists<T>, transform<T, float>,
            transform<T, T>, dot_gather<T>, nonzeros<T>};
}

}  // namespace

Table MARGINWISE_TABLE() {
    return {products<float>(),
            products<double>(),
            dot,
            collect,
            add,
            step<double>,
            extremes<double>,
            second_order<double>,
            step<float>,
            extremes<float>,
            second_order<float>,
            step_both,
            tally,
            moments,
            best_gain,
            dot_full,
            add_full,
            gaxpy,
            rotate,
            weigh,
            weigh_lists,
            mirror,
            bend,
            MARGINWISE_ISA};
}

}  // namespace marginwise::simd
