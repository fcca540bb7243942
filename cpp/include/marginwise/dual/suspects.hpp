// Suspects: examples whose labels may be wrong, because y f(x) is below the end of the ramp.
#pragma once

#include <limits>

#include "marginwise/base/random.hpp"

namespace marginwise {

// The suspects of one problem that it does not hold; for members, y f is known from the gradient.
// The hash table is a single array, because models are cloned often.
class Suspects {
  public:
    struct Note {
        std::int64_t id = 0;
        double value = kForgotten;        // y f when the example was last judged
        std::int32_t label = kFreeLabel;  // its class

        bool counts() const { return value != kForgotten; }
    };

    // INVARIANT  every value that counts is below the ramp
    //            used_ counts the notes with a label, of which there are at most half the slots
    double ramp = -kForgotten;  // end of the ramp; until it is set, nothing is below it

    // Records y f of an example that the problem does not hold, or no longer holds.
    void judge(std::int64_t id, std::int32_t label, double value) {
        if (!(value < ramp)) return forget(id);
        reserve(1);
        Note& note = slot(id);
        used_ += note.label == kFreeLabel;
        note = {id, value, label};
    }

    void forget(std::int64_t id) {
        if (used_ > 0) slot(id).value = kForgotten;
    }

    // Reserves memory for n more notes.
    void reserve(Index n) {
        if (2 * (used_ + n) <= slots_.size() || ramp == -kForgotten) return;
        const Vector<Note> kept = sorted();
        slots_ = Vector<Note>(4 * (kept.size() + n));
        for (const Note& note : kept) slot(note.id) = note;
        used_ = kept.size();
    }

    // All notes, sorted by id.
    Vector<Note> sorted() const {
        Vector<Note> notes;
        for (const Note& note : slots_)
            if (note.counts()) notes.push_back(note);
        std::sort(notes.begin(), notes.end(),
                  [](const Note& a, const Note& b) { return a.id < b.id; });
        return notes;
    }

  private:
    static constexpr double kForgotten = std::numeric_limits<double>::infinity();
    static constexpr std::int32_t kFreeLabel = -1;

    // The slot of an example, or the free one where its note belongs.
    Note& slot(std::int64_t id) {
        Index k = scale_below(splitmix64(static_cast<std::uint64_t>(id)), slots_.size());
        while (slots_[k].label != kFreeLabel && slots_[k].id != id) k = (k + 1) % slots_.size();
        return slots_[k];
    }

    Vector<Note> slots_;
    Index used_ = 0;
};

}  // namespace marginwise
