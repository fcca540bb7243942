// Virtual images: elastic deformations, thickening and shifts of given images [loosli2007, 3.2].
//
//   paper                 here
//   x, t_x, t_y           Originals: images and their translation tangents
//   f_x, f_y              rows of Fields, one collection for both directions
//   alpha_x, alpha_y      Draw::along_x, along_y
//   beta                  Draw::thicken
//   large translations    Draw::right, down
//
// DEPARTS: alpha_x and alpha_y have the same value for all variants, which vary by their fields.
// DEPARTS: values are clipped to the range of their image, and faint values become its lowest.
// DEPARTS: the zero shift is included, with the same probability as every other shift.
//
// A virtual image is a function of (seed, variant, example) only, so any image can be generated at
// any time, in any order and on any thread.
#pragma once

#include <algorithm>
#include <cmath>

#include "marginwise/base/random.hpp"
#include "marginwise/base/thread_pool.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

// Images are stored row by row, with the channels of a pixel next to each other.
struct Shape {
    Index height, width, channels;
    Index size() const { return height * width * channels; }
    Index line() const { return width * channels; }
};

struct Strengths {
    double elastic;     // factor of the fields, which are in pixels
    double thickening;  // the largest |beta|
    Index shift;        // the largest whole-pixel translation
};

// Images and tangents have one row of shape.size() values per image. The caller owns all arrays.
struct Originals {
    const float *images, *tangents_x, *tangents_y;
    const float *low, *high;  // range of each image, which its deformations are clipped to
    Index n;
};

struct Fields {
    const float* values;  // pixels, repeated for each channel
    Index n;
};

// A counter-based random stream: the k-th number is a hash of the stream's key and k.
class Draws {
  public:
    Draws(std::uint64_t seed, std::uint64_t variant, std::uint64_t example)
        : key_(mixed(mixed(mixed(seed) + variant) + example)) {}

    // 0 .. n - 1
    Index below(Index n) { return scale_below(next(), n); }
    // -1 .. 1
    double symmetric() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }

  private:
    static std::uint64_t mixed(std::uint64_t z) { return splitmix64(z + kGolden); }
    std::uint64_t next() { return mixed(key_ + ++drawn_ * kGolden); }

    std::uint64_t key_, drawn_ = 0;
};

// The random deformation of one image.
struct Draw {
    Index field_x, field_y;
    float along_x, along_y, thicken;
    Index right, down;

    static Draw of(std::uint64_t seed, std::int64_t variant, std::int64_t example,
                   const Strengths& strengths, Index fields) {
        Draws draws(seed, static_cast<std::uint64_t>(variant), static_cast<std::uint64_t>(example));
        Draw draw;
        draw.field_x = draws.below(fields);
        draw.field_y = draws.below(fields);
        draw.along_x = static_cast<float>(strengths.elastic);
        draw.along_y = static_cast<float>(strengths.elastic);
        draw.thicken = static_cast<float>(strengths.thickening * draws.symmetric());
        draw.right = draws.below(2 * strengths.shift + 1) - strengths.shift;
        draw.down = draws.below(2 * strengths.shift + 1) - strengths.shift;
        return draw;
    }
};

class Deformer {
  public:
    // Values within this fraction of an image's range above its lowest value become the lowest
    // value: the faint traces left by smoothing cost more time than they contribute.
    static constexpr float kFaint = 1.0f / 256;

    Deformer(Shape shape, Strengths strengths, Fields fields, std::uint64_t seed)
        : shape_(shape), strengths_(strengths), fields_(fields), seed_(seed) {}

    // out[r] = variant variants[r] of image examples[r]; variant 0 is the image itself.
    void deform(const Originals& from, const std::int64_t* examples, const std::int64_t* variants,
                Index n, Index threads, float* out) const {
        constexpr Index kTogether = 64;
        const Index size = shape_.size();
        ThreadPool workers(std::min(threads, 1 + n / kTogether));
        workers.run((n + kTogether - 1) / kTogether, [&](Index task, Index) {
            Array<float> still(size);
            for (Index r = task * kTogether; r < std::min(n, (task + 1) * kTogether); ++r)
                make(from, examples[r], variants[r], still.data(), out + r * size);
        });
    }

  private:
    void make(const Originals& from, std::int64_t example, std::int64_t variant, float* still,
              float* out) const {
        const Index at = example * shape_.size();
        const float* image = from.images + at;
        if (variant == 0) {
            std::copy(image, image + shape_.size(), out);
            return;
        }
        const Draw draw = Draw::of(seed_, variant, example, strengths_, fields_.n);
        const float low = from.low[example], high = from.high[example];
        const simd::Bending bending{draw.along_x, draw.along_y, draw.thicken,
                                    low,          high,         kFaint * (high - low)};
        const bool moves = draw.right != 0 || draw.down != 0;
        table().bend(image, from.tangents_x + at, from.tangents_y + at,
                     fields_.values + draw.field_x * shape_.size(),
                     fields_.values + draw.field_y * shape_.size(), bending, moves ? still : out,
                     shape_.size());
        if (moves) shift(still, draw, low, out);
    }

    // Shifts an image. Pixels that come from outside are set to `background`.
    void shift(const float* from, const Draw& draw, float background, float* out) const {
        const Index line = shape_.line();
        const Index right = draw.right * shape_.channels;
        const Index first = std::clamp<Index>(right, 0, line);
        const Index last = std::clamp<Index>(line + right, 0, line);
        for (Index row = 0; row < shape_.height; ++row) {
            float* to = out + row * line;
            const Index source = row - draw.down;
            if (source < 0 || source >= shape_.height || first >= last) {
                std::fill(to, to + line, background);
                continue;
            }
            std::fill(to, to + first, background);
            std::copy(from + source * line + first - right, from + source * line + last - right,
                      to + first);
            std::fill(to + last, to + line, background);
        }
    }

    Shape shape_;
    Strengths strengths_;
    Fields fields_;
    std::uint64_t seed_;
};

// The arguments of one call.
struct DeformCall {
    DenseView<float> images;   // one row per image
    CubeView<float> tangents;  // along x, then along y
    DenseView<float> ranges;   // lowest values of the images, then highest
    DenseView<float> fields;
    Vector<Index> shape;  // height, width, channels
    Strengths strengths;
    std::uint64_t seed;
    View<std::int64_t> examples, variants;  // one of each per image to write
    MutableView<float> out;

    void check() const {
        require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[2] > 0,
                "a shape has height, width and channels");
        const Index n = images.rows, d = shape[0] * shape[1] * shape[2];
        require(images.cols == d && fields.cols == d && out.cols == d && tangents.depth == 2 &&
                    tangents.rows == n && tangents.cols == d,
                "images, tangents, fields and out must have the size of the shape");
        require(ranges.rows == 2 && ranges.cols == n, "an image has a least and a greatest");
        require(fields.rows > 0 && strengths.shift >= 0, "a field at least, and no negative shift");
        require(examples.size == out.rows && variants.size == out.rows,
                "an example and a variant for each image to write");
        for (const std::int64_t example : examples)
            require(example >= 0 && example < n, "no such image");
        for (const std::int64_t variant : variants) require(variant >= 0, "no such image");
    }
};

inline void deform_images(const DeformCall& call, Index threads) {
    call.check();
    const Index n = call.images.rows, size = n * call.images.cols;
    const Originals originals{call.images.data, call.tangents.data,   call.tangents.data + size,
                              call.ranges.data, call.ranges.data + n, n};
    const Deformer deformer({call.shape[0], call.shape[1], call.shape[2]}, call.strengths,
                            {call.fields.data, call.fields.rows}, call.seed);
    deformer.deform(originals, call.examples.data, call.variants.data, call.out.rows, threads,
                    call.out.data);
}

}  // namespace marginwise
