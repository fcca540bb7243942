// Deformed images against plain loops, and the draws that they are made from.

#include <algorithm>
#include <cstring>

#include "check.hpp"
#include "marginwise/images/deform.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

constexpr Index kFields = 7;

// SplitMix64 as printed: the state goes up by the golden ratio, and its bits are mixed.
std::uint64_t split_mix(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

std::uint64_t mixed_once(std::uint64_t state) { return split_mix(state); }

struct Pictures {
    Shape shape;
    Index n;
    Vector<float> images, t_x, t_y, low, high, fields;

    Pictures(Shape shape_, Index n_) : shape(shape_), n(n_) {
        toy::Random random(3);
        const auto some = [&](Vector<float>& to, Index count, double size) {
            for (Index k = 0; k < count; ++k)
                to.push_back(static_cast<float>(size * random.around_zero()));
        };
        some(images, n * shape.size(), 4.0);
        some(t_x, n * shape.size(), 2.0);
        some(t_y, n * shape.size(), 2.0);
        some(fields, kFields * shape.size(), 0.5);
        for (Index k = 0; k < n; ++k) {
            const auto first = images.begin() + k * shape.size();
            const auto range = std::minmax_element(first, first + shape.size());
            low.push_back(*range.first);
            high.push_back(*range.second);
        }
    }

    Originals originals() const {
        return {images.data(), t_x.data(), t_y.data(), low.data(), high.data(), n};
    }
    Deformer deformer(Strengths strengths, std::uint64_t seed = 11) const {
        return Deformer(shape, strengths, {fields.data(), kFields}, seed);
    }

    // A variant pixel by pixel, in double precision.
    Vector<double> variant(Strengths strengths, std::int64_t variant, Index example) const {
        const Draw draw = Draw::of(11, variant, example, strengths, kFields);
        const double least = static_cast<double>(low[example]);
        const double most = static_cast<double>(high[example]);
        Vector<double> out(shape.size(), least);
        for (Index row = 0; row < shape.height; ++row)
            for (Index column = 0; column < shape.width; ++column)
                for (Index channel = 0; channel < shape.channels; ++channel) {
                    const Index from_row = row - draw.down, from_column = column - draw.right;
                    if (from_row < 0 || from_row >= shape.height || from_column < 0 ||
                        from_column >= shape.width)
                        continue;
                    const Index at =
                        (from_row * shape.width + from_column) * shape.channels + channel;
                    out[(row * shape.width + column) * shape.channels + channel] =
                        pixel(draw, example, at, least, most);
                }
        return out;
    }

  private:
    double pixel(const Draw& draw, Index example, Index at, double least, double most) const {
        const Index k = example * shape.size() + at;
        const double x = static_cast<double>(t_x[k]), y = static_cast<double>(t_y[k]);
        const Index f_x = draw.field_x * shape.size() + at;
        const Index f_y = draw.field_y * shape.size() + at;
        const double value =
            static_cast<double>(images[k]) +
            static_cast<double>(draw.along_x) * static_cast<double>(fields[f_x]) * x +
            static_cast<double>(draw.along_y) * static_cast<double>(fields[f_y]) * y +
            static_cast<double>(draw.thicken) * std::sqrt(x * x + y * y);
        const double kept = std::min(value, most);
        return kept < least + (most - least) / 256 ? least : kept;
    }
};

const Vector<Shape> kShapes{{5, 7, 1}, {7, 5, 3}, {1, 9, 1}, {9, 1, 2}, {1, 1, 1}, {16, 16, 1}};

Vector<float> made(const Pictures& pictures, const Deformer& deformer,
                   const Vector<std::int64_t>& examples, const Vector<std::int64_t>& variants,
                   Index threads) {
    Vector<float> out(examples.size() * pictures.shape.size(), 99.0f);
    deformer.deform(pictures.originals(), examples.data(), variants.data(), examples.size(),
                    threads, out.data());
    return out;
}

TEST(variants_are_what_plain_loops_make) {
    for (const Shape& shape : kShapes)
        for (const Strengths strengths :
             {Strengths{1.5, 0.0, 0}, Strengths{1.5, 0.0, 1}, Strengths{0.0, 0.0, 2},
              Strengths{2.0, 0.5, 3}, Strengths{0.7, 0.3, 50}}) {
            const Pictures pictures(shape, 4);
            Vector<std::int64_t> examples, variants;
            for (Index k = 0; k < 40; ++k) {
                examples.push_back(k % 4);
                variants.push_back(1 + k / 4);
            }
            const Vector<float> out =
                made(pictures, pictures.deformer(strengths), examples, variants, 1);
            for (Index k = 0; k < 40; ++k) {
                const Vector<double> expected =
                    pictures.variant(strengths, variants[k], examples[k]);
                double worst = 0;
                for (Index p = 0; p < shape.size(); ++p)
                    worst = std::max(
                        worst,
                        std::abs(static_cast<double>(out[k * shape.size() + p]) - expected[p]));
                CHECK_SAY(worst <= 1e-5, toy::at("variant is off:", k));
            }
        }
}

TEST(variant_zero_is_the_image_itself) {
    for (const Shape& shape : kShapes) {
        const Pictures pictures(shape, 3);
        const Vector<float> out =
            made(pictures, pictures.deformer({5.0, 5.0, 5}), {2, 0, 1}, {0, 0, 0}, 1);
        const Index bytes = shape.size() * sizeof(float);
        for (const Index k : {0, 1, 2})
            CHECK(std::memcmp(out.data() + k * shape.size(),
                              pictures.images.data() + ((k + 2) % 3) * shape.size(), bytes) == 0);
    }
}

TEST(batches_orders_and_threads_do_not_matter) {
    const Pictures pictures({6, 5, 1}, 9);
    const Deformer deformer = pictures.deformer({1.0, 0.2, 1});
    toy::Random random(5);
    Vector<std::int64_t> examples, variants;
    for (Index k = 0; k < 700; ++k) {
        examples.push_back(random.below(9));
        variants.push_back(random.below(5));
    }
    const Vector<float> all = made(pictures, deformer, examples, variants, 1);
    for (const Index threads : {2, 3, 8})
        CHECK(made(pictures, deformer, examples, variants, threads) == all);
    for (Index k = 0; k < 700; k += 13) {
        const Vector<float> alone = made(pictures, deformer, {examples[k]}, {variants[k]}, 3);
        CHECK(std::equal(alone.begin(), alone.end(), all.begin() + k * 30));
    }
    CHECK(made(pictures, deformer, {}, {}, 2).empty());
}

TEST(draws_are_those_of_splitmix64) {
    std::uint64_t state = 1234567;
    CHECK(split_mix(state) == 6457827717110365317u);  // as published
    CHECK(split_mix(state) == 3203168211198807973u);
    for (const std::uint64_t seed : {std::uint64_t(0), std::uint64_t(9), ~std::uint64_t(0)}) {
        std::uint64_t key = mixed_once(mixed_once(mixed_once(seed) + 3) + 5);
        Draws draws(seed, 3, 5);
        key += 0x9e3779b97f4a7c15u;  // the first number is drawn at 1
        for (Index k = 0; k < 20; ++k) {
            const std::uint64_t word = split_mix(key);
            if (k % 2 == 0)
                CHECK(draws.below(1000) ==
                      static_cast<Index>((static_cast<unsigned __int128>(word) * 1000) >> 64));
            else
                CHECK(draws.symmetric() == static_cast<double>(word >> 11) * 0x1p-52 - 1.0);
        }
    }
}

TEST(draws_keep_to_their_bounds_and_are_spread_evenly) {
    const Strengths strengths{2.0, 0.5, 2};
    Vector<Index> field_x(5, 0), field_y(5, 0), right(5, 0), down(5, 0);
    double least = 1, most = -1, sum = 0;
    constexpr Index n = 20000;
    for (Index k = 0; k < n; ++k) {
        const Draw draw = Draw::of(1, 1 + k / 100, k % 100, strengths, 5);
        CHECK(draw.along_x == 2.0f && draw.along_y == 2.0f);
        ++field_x[draw.field_x];
        ++field_y[draw.field_y];
        ++right[draw.right + 2];
        ++down[draw.down + 2];
        const double beta = static_cast<double>(draw.thicken);
        least = std::min(least, beta);
        most = std::max(most, beta);
        sum += beta;
    }
    for (const auto* counts : {&field_x, &field_y, &right, &down})
        for (const Index c : *counts) CHECK(c > n / 5 - 250 && c < n / 5 + 250);  // four deviations
    CHECK(least >= -0.5 && least < -0.499 && most <= 0.5 && most > 0.499);
    CHECK(std::abs(sum / n) < 4 * 0.5 / std::sqrt(3.0 * n));
}

TEST(what_is_not_asked_for_is_drawn_all_the_same) {
    // The fields of a variant stay the same whether it is thickened or moved.
    const Draw plain = Draw::of(4, 2, 9, {1.0, 0.0, 0}, 50);
    const Draw more = Draw::of(4, 2, 9, {3.0, 0.5, 4}, 50);
    CHECK(plain.field_x == more.field_x && plain.field_y == more.field_y);
    CHECK(plain.thicken == 0.0f && plain.right == 0 && plain.down == 0);
    CHECK(Draw::of(4, 3, 9, {1.0, 0.0, 0}, 1 << 30).field_x !=
          Draw::of(4, 2, 9, {1.0, 0.0, 0}, 1 << 30).field_x);
}

TEST(the_two_directions_have_fields_of_their_own) {
    const Draw draw = Draw::of(4, 2, 9, {1.0, 0.0, 0}, 1 << 30);
    CHECK(draw.field_x != draw.field_y);
}

TEST(the_range_is_kept) {
    const Pictures pictures({8, 8, 1}, 50);
    const Deformer deformer = pictures.deformer({20.0, 5.0, 1});
    const auto all = toy::ascending(50);
    const Vector<float> out = made(pictures, deformer, all, Vector<std::int64_t>(50, 1), 1);
    Index cut = 0;
    for (Index k = 0; k < 50 * 64; ++k) {
        const float low = pictures.low[k / 64], high = pictures.high[k / 64];
        const float value = out[k];
        CHECK(value >= low && value <= high);
        CHECK(value == low || value >= low + 0.999f * Deformer::kFaint * (high - low));
        cut += value == high;
    }
    CHECK(cut > 50);
}

}  // namespace
