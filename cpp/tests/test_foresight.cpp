// Foresight: decision values that were noted before their examples were learned.

#include "check.hpp"
#include "marginwise/dual/foresight.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

Vector<double> values_of(const Foresight& foresight) {
    Vector<double> values;
    for (const Foresight::Value& value : foresight) values.push_back(value.f);
    return values;
}

TEST(the_later_half_of_a_stream_is_kept) {
    Foresight foresight(1000);
    for (Index n = 0; n < 500; ++n) foresight.add(static_cast<double>(n), 1.0);
    const Vector<double> kept = values_of(foresight);
    CHECK(foresight.seen() == 500 && kept.size() == 250);
    for (Index k = 0; k < kept.size(); ++k) CHECK(kept[k] == static_cast<float>(250 + k));
}

TEST(few_values_are_all_kept) {
    Foresight foresight(1000);
    for (Index n = 0; n < 64; ++n) foresight.add(1.0, -2.0);
    CHECK(foresight.size() == 64 && foresight.begin()->weight == -2.0f);
}

TEST(values_beyond_floats_are_the_nearest_floats) {
    Foresight foresight(1000);
    foresight.add(1e300, 1e-300);
    foresight.add(-1e300, -1e300);
    const float tiny = std::numeric_limits<float>::min(), huge = std::numeric_limits<float>::max();
    CHECK(foresight.begin()[0].f == huge && foresight.begin()[0].weight == tiny);
    CHECK(foresight.begin()[1].f == -huge && foresight.begin()[1].weight == -huge);
}

TEST(no_more_than_the_limit_are_kept) {
    Foresight foresight(100);
    for (Index n = 0; n < 1000; ++n) {
        foresight.add(static_cast<double>(n), 1.0);
        CHECK(foresight.size() <= 100);
    }
    const Vector<double> kept = values_of(foresight);
    CHECK(kept.front() == 900.0f && kept.back() == 999.0f);
}

TEST(restored_values_continue_as_they_would_have) {
    Foresight whole(50), first(50), second(50);
    for (Index n = 0; n < 300; ++n) {
        whole.add(static_cast<double>(n), 1.0);
        (n < 137 ? first : second).add(static_cast<double>(n), 1.0);
        if (n == 136) second.restore({first.begin(), first.end()}, first.seen());
    }
    CHECK(values_of(whole).size() == 50 && whole.seen() == second.seen());
    const Vector<double> one = values_of(whole), other = values_of(second);
    CHECK(std::equal(one.begin(), one.end(), other.begin(), other.end()));
}

TEST(nothing_is_noted_unless_it_is_wanted) {
    Foresight foresight;
    foresight.reserve(10);
    foresight.add(1.0, 1.0);
    CHECK(foresight.size() == 0 && foresight.seen() == 0);
}

}  // namespace
