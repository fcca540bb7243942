// Notes of suspects: a hash table beside a map from the standard library.

#include <map>

#include "check.hpp"
#include "marginwise/dual/suspects.hpp"
#include "toy.hpp"

using namespace marginwise;

namespace {

TEST(notes_are_those_of_a_map) {
    toy::Random random(5);
    Suspects suspects;
    suspects.ramp = -0.5;
    std::map<std::int64_t, double> expected;
    for (Index trial = 0; trial < 20000; ++trial) {
        const Index among = trial < 10000 ? 3000 : 300;  // more are noted, then more are forgotten
        const std::int64_t id = (random.below(among) - among / 2) * (std::int64_t{1} << 50);
        const double value = 2 * random.around_zero();
        suspects.judge(id, static_cast<std::int32_t>(id & 1), value);
        if (value < suspects.ramp)
            expected[id] = value;
        else
            expected.erase(id);
        if (trial % 7 == 0) {
            suspects.forget(id);
            expected.erase(id);
        }
        if (trial % 1000 != 0) continue;
        const Vector<Suspects::Note> notes = suspects.sorted();
        CHECK(notes.size() == Index(expected.size()));
        auto at = expected.begin();
        for (const Suspects::Note& note : notes) {
            CHECK(note.id == at->first && note.value == at->second);
            ++at;
        }
    }
}

TEST(nothing_is_noted_without_a_ramp) {
    Suspects suspects;
    suspects.reserve(100);
    suspects.judge(1, 0, -1e300);
    suspects.forget(1);
    CHECK(suspects.sorted().empty());
}

TEST(no_number_is_no_suspect) {
    Suspects suspects;
    suspects.ramp = 0.0;
    suspects.judge(1, 0, -1.0);
    suspects.judge(1, 0, std::numeric_limits<double>::quiet_NaN());
    CHECK(suspects.sorted().empty());
}

}  // namespace
