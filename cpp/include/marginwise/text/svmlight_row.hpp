// One row of the svmlight (LIBSVM) text format: "label [qid:n] index:value ... # comment".
//
// The base class of the parser and the first pass: it reads the parts of a row character by
// character, reports errors with their column, and records the range of indices.
#pragma once

#include <cmath>

#include "marginwise/text/decimal.hpp"
#include "marginwise/text/lines.hpp"

namespace marginwise::text {

class SvmlightRows {
  public:
    static constexpr std::int64_t kLargestIndex = std::numeric_limits<std::int32_t>::max();

    // `base`: the index of the first feature in the text, 0 or 1; kNone if that is not known.
    // `n_features`: if kNone, indices may be as large as int32 allows.
    SvmlightRows(Index base, Index n_features)
        : base_(base == 1 ? 1 : 0), n_features_(n_features), last_(kLargestIndex) {
        require(base >= kNone && base <= 1, "the first index is 0 or 1");
        if (n_features < 0) return;
        last_ = std::min<std::int64_t>(n_features - (base == 0 ? 1 : 0), kLargestIndex);
    }

    // The number of the next line, starting at 1. After an error, it is the line with the error.
    Index line() const { return line_; }
    void set_line(Index line) { line_ = line; }

    // The smallest and largest index so far, as written in the text, and the line of the largest;
    // kNone before the first index.
    std::int64_t least() const { return least_; }
    std::int64_t greatest() const { return greatest_; }
    Index line_of_greatest() const { return line_of_greatest_; }

    // Skips up to `most` rows from byte `from` without parsing them.
    Progress skip(Bytes text, Index from, Index most) {
        const Index wanted = most;
        const auto pass = [](const char* p) { return p; };
        const Index stopped = with_room_behind(
            text, from, [&](auto p, auto end, Index) { return for_each_row(p, end, most, pass); });
        return {stopped, wanted - most};
    }

  protected:
    // Calls read(p) at the first character of each row in [p, end); it must return a position on
    // that line. Counts `most` down to 0. Returns the end of the last line read.
    template <class Read>
    const char* for_each_row(const char* p, const char* end, Index& most, Read&& read) {
        for (; p != end && most > 0; ++line_) {
            line_start_ = p;
            p = line_content(p, line_);
            if (!ends_row(*p)) {
                p = read(p);
                --most;
            }
            p = (*p == '\n' ? p : line_end(p, end)) + 1;
        }
        return p;
    }

    void note_indices(std::int64_t first, std::int64_t last) {
        if (least_ == kNone || first < least_) least_ = first;
        if (last <= greatest_) return;
        greatest_ = last;
        line_of_greatest_ = line_;
    }

    // Each reads one part of a row at p and returns its end, or throws std::invalid_argument.
    const char* label(const char* p, double& value) const;
    const char* query(const char* p) const;  // optional; groups rows for ranking
    const char* index(const char* p, std::int64_t& written) const;  // returns the ':'
    const char* value(const char* p, float& value) const;
    // Throws unless an index may follow `previous`, which is base - 1 before the first one.
    void check_index(const char* p, std::int64_t written, std::int64_t previous) const;

    const char* line_start() const { return line_start_; }

    [[noreturn]] void fail(const char* p, const std::string& what) const {
        throw std::invalid_argument("column " + std::to_string(p - line_start_ + 1) + ": " + what);
    }

    std::int64_t base_, n_features_, last_;  // last_: the largest index allowed, as written

  private:
    std::int64_t least_ = kNone, greatest_ = kNone;
    Index line_ = 1, line_of_greatest_ = kNone;
    const char* line_start_ = nullptr;
};

inline const char* SvmlightRows::index(const char* p, std::int64_t& written) const {
    const char* q = p;
    for (; is_digit(*q); ++q)
        if (written <= kLargestIndex) written = written * 10 + (*q - '0');
    if (q == p)
        fail(p, "expected index:value, got " + quoted(p) +
                    "; the index is the number of a feature, as in 3:0.5");
    if (*q != ':')
        fail(q, "expected ':' after the index in " + quoted(p) +
                    "; features are written as index:value, as in 3:0.5");
    return q;
}

inline void SvmlightRows::check_index(const char* p, std::int64_t written,
                                      std::int64_t previous) const {
    if (written > previous && written <= last_) return;
    const std::string shown = std::to_string(written);
    if (written > kLargestIndex)
        fail(p, "the index in " + quoted(p) + " is too large; expected at most " +
                    std::to_string(kLargestIndex));
    if (written == 0 && base_ == 1)
        fail(p,
             "index 0 in a one-based file; expected 1 or more. Pass zero_based=True if this "
             "file counts features from 0");
    if (written <= previous)
        fail(p, "index " + shown + " follows " + std::to_string(previous) +
                    "; expected ascending indices without repetition. Sort the features of "
                    "each row");
    fail(p, "index " + shown + " is beyond n_features=" + std::to_string(n_features_) +
                "; expected at most " + std::to_string(last_) +
                ". Pass a larger n_features, or drop the feature");
}

inline const char* SvmlightRows::value(const char* p, float& value) const {
    Decimal x;
    const char* const end = read_decimal(p, x);
    if (end == nullptr || !ends_token(*end))
        fail(p, "expected a finite number as value, got " + quoted(p) +
                    "; leave features out that are missing, or write an estimate");
    value = to_float(x, p, end);
    if (!(std::abs(value) <= std::numeric_limits<float>::max()))
        fail(p, "the value " + quoted(p) +
                    " is outside the range of float32; expected at most 3.4e38 in size. "
                    "Scale the feature");
    return end;
}

inline const char* SvmlightRows::label(const char* p, double& value) const {
    Decimal x;
    const char* const end = read_decimal(p, x);
    if (end == nullptr || !ends_token(*end)) {
        const std::string token(p, token_end(p));
        if (token.find(':') != std::string::npos)
            fail(p, "expected a label, got " + quoted(p) +
                        "; each row begins with its label, which is 0 where it is not known");
        if (end != nullptr && *end == ',')
            fail(p, "expected one label, got " + quoted(p) +
                        "; rows with several labels are not supported");
        fail(p, "expected a number as label, got " + quoted(p) +
                    "; a row is written as label index:value index:value, as in 1 3:0.5 7:2");
    }
    value = to_double(x, p, end);
    if (!(std::abs(value) <= std::numeric_limits<double>::max()))
        fail(p, "the label " + quoted(p) + " is too large; expected a class or a finite number");
    return end;
}

inline const char* SvmlightRows::query(const char* p) const {
    p = skip_blanks(p);
    if (*p != 'q' || std::strncmp(p, "qid:", 4) != 0) return p;
    const char* q = p + 4;
    q += *q == '-';
    const char* const digits = q;
    while (is_digit(*q)) ++q;
    if (q == digits || !ends_token(*q))
        fail(p, "expected an integer as query id, got " + quoted(p) + "; it is written as qid:3");
    return q;
}

}  // namespace marginwise::text
