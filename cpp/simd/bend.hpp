// Deformation of an image along its tangents.
#pragma once

#include "marginwise/simd/table.hpp"

namespace marginwise::simd {
namespace {

// Written without explicit vectors: the compiler vectorizes it, and sums of products round in the
// same way for all elements.
void bend(const float* __restrict image, const float* __restrict t_x, const float* __restrict t_y,
          const float* __restrict f_x, const float* __restrict f_y, const Bending& how,
          float* __restrict out, Index n) {
    const Bending b = how;
    const float faint = b.low + b.faint;
    const auto keep = [&](float value) {
        const float kept = value > b.high ? b.high : value;
        return kept < faint ? b.low : kept;
    };
    if (b.thicken == 0)
        for (Index k = 0; k < n; ++k)
            out[k] = keep(image[k] + b.along_x * f_x[k] * t_x[k] + b.along_y * f_y[k] * t_y[k]);
    else
        for (Index k = 0; k < n; ++k)
            out[k] = keep(image[k] + b.along_x * f_x[k] * t_x[k] + b.along_y * f_y[k] * t_y[k] +
                          b.thicken * __builtin_sqrtf(t_x[k] * t_x[k] + t_y[k] * t_y[k]));
}

}  // namespace
}  // namespace marginwise::simd
