// Rows of svmlight (LIBSVM) text as CSR arrays.
//
// `features` and `quick_value` read features of the usual form, such as "153:0.25 ", eight digits
// at a time. Unusual or invalid features go to `slow_feature`, which reads the same format
// character by character and throws if it is violated.
#pragma once

#include "marginwise/text/svmlight_row.hpp"

namespace marginwise::text {

// CSR arrays with a label per row.
struct LabelledRows {
    Array<double> labels;
    Array<std::int64_t> indptr;
    Array<std::int32_t> indices;
    Array<float> values;
};

// INVARIANT indptr.size() == labels.size() + 1, and indptr ascends from 0
// INVARIANT indices ascend within a row; indices and values have indptr.back() entries or more
class SvmlightParser : public SvmlightRows {
  public:
    // If the base is not known (kNone), indices are stored as written.
    SvmlightParser(Index base, Index n_features) : SvmlightRows(base, n_features) { restart(); }

    // Parses up to `most` rows of whole lines from byte `from`. Only the last line may lack its
    // '\n'. Returns the progress.
    // Throws std::invalid_argument, "column 3: ...", at a line that violates the format; the rows
    // before it remain parsed.
    Progress parse(Bytes text, Index from, Index most);

    // Announces the total number of bytes to be parsed, so that memory is allocated only once.
    void expect(Index bytes) { expected_ = bytes; }

    Index rows() const { return rows_.labels.size(); }

    // Returns the rows parsed so far and removes them from the parser.
    LabelledRows take() {
        rows_.indices.resize(rows_.indptr.back());
        rows_.values.resize(rows_.indptr.back());
        LabelledRows taken = std::move(rows_);
        restart();
        return taken;
    }

  private:
    // Where to store the next feature, and the index of the previous one as written in the text.
    struct Sink {
        std::int32_t* index;
        float* value;
        std::int64_t previous;
    };

    void restart() {
        rows_ = LabelledRows();
        rows_.indptr.push_back(0);
        parsed_ = 0;
    }

    void make_room(Index bytes);
    const char* row(const char* p);
    const char* features(const char* p, Sink& out) const;
    const char* slow_feature(const char* p, Sink& out) const;

    LabelledRows rows_;
    Index expected_ = 0, parsed_ = 0;  // bytes
};

// Reads a value without exponent and with up to 19 digits, at most 7 of them before the point.
// Returns its end, or nullptr if the value has another form.
inline const char* quick_value(const char* p, float& value) {
    const char* const first = p;
    Decimal x;
    Word word = load_word(p);
    x.negative = (word & 0xFF) == '-';
    word >>= 8 * x.negative;
    p += x.negative;
    int n = leading_digits(word);
    if (n == 8) return nullptr;
    x.m = value_of(word, n);
    p += n;
    if (*p == '.') {
        const char* const fraction = ++p;
        const bool digits = n > 0;
        for (word = load_word(p); (n = leading_digits(word)) == 8; word = load_word(p)) {
            if (x.m >= kRoom[8]) return nullptr;
            x.m = x.m * 100'000'000 + value_of_8(word);
            p += 8;
        }
        if (x.m >= kRoom[n]) return nullptr;
        x.m = x.m * kIntegerPowers[n] + value_of(word, n);
        p += n;
        x.exponent = static_cast<int>(fraction - p);
        n = digits || p != fraction;
    }
    if (n == 0 || !ends_token(*p)) return nullptr;
    value = to_float(x, first, p);
    return p;
}

// Reads features up to the end of the row; returns that end.
inline const char* SvmlightParser::features(const char* p, Sink& out) const {
    const std::int64_t base = base_, last = last_;
    std::int64_t previous = out.previous;
    std::int32_t* index = out.index;
    float* value = out.value;
    for (;;) {
        const Word word = load_word(p);
        const int n = leading_digits(word);
        if (n > 0 && n < 8 && p[n] == ':') {
            const auto written = static_cast<std::int64_t>(value_of(word, n));
            const char* const end = quick_value(p + n + 1, *value);
            if (end != nullptr && written > previous && written <= last) {
                *index++ = static_cast<std::int32_t>(written - base);
                ++value;
                previous = written;
                p = end;
                if (*p == ' ') {
                    ++p;
                    continue;
                }
            }
        }
        if (is_blank(*p)) {
            p = skip_blanks(p);
            continue;
        }
        out = {index, value, previous};
        if (ends_row(*p)) return p;
        p = slow_feature(p, out);
        p += *p == ' ';
        index = out.index, value = out.value, previous = out.previous;
    }
}

inline const char* SvmlightParser::slow_feature(const char* p, Sink& out) const {
    std::int64_t written = 0;
    const char* const end = this->index(p, written);
    check_index(p, written, out.previous);
    p = this->value(end + 1, *out.value);
    *out.index = static_cast<std::int32_t>(written - base_);
    out = {out.index + 1, out.value + 1, written};
    return p;
}

// Reads a row; returns its end: '\n' or '#'.
inline const char* SvmlightParser::row(const char* p) {
    const Index stored = rows_.indptr.back();
    std::int32_t* const indices = rows_.indices.data();
    Sink sink{indices + stored, rows_.values.data() + stored, base_ - 1};
    double y = 0.0;
    p = features(query(label(p, y)), sink);
    const Index now = sink.index - indices;
    rows_.labels.push_back(y);
    rows_.indptr.push_back(now);
    if (now > stored) note_indices(indices[stored] + base_, sink.previous);
    return p;
}

inline Progress SvmlightParser::parse(Bytes text, Index from, Index most) {
    require(from >= 0 && from <= text.size, "the first byte is outside the text");
    const Index before = rows();
    make_room(text.size - from);
    const Index stopped = with_room_behind(text, from, [&](auto p, auto end, Index) {
        return for_each_row(p, end, most, [this](const char* q) { return row(q); });
    });
    parsed_ += stopped - from;
    return {stopped, rows() - before};
}

// A feature takes at least four bytes, as in "1:2 ".
inline void SvmlightParser::make_room(Index bytes) {
    const Index stored = rows_.indptr.back(), needed = stored + bytes / 4 + 1;
    if (needed > rows_.indices.capacity()) {
        Index size = std::max(needed, rows_.indices.capacity() / 2 * 3);
        if (parsed_ > 0 && expected_ > parsed_) {
            const double growth = static_cast<double>(expected_) / static_cast<double>(parsed_);
            size = std::max(
                size, needed + static_cast<Index>(1.02 * growth * static_cast<double>(stored)));
        }
        rows_.indices.reserve(size);
        rows_.values.reserve(size);
    }
    rows_.indices.resize(needed);
    rows_.values.resize(needed);
}

}  // namespace marginwise::text
