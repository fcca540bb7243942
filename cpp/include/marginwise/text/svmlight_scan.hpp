// The first pass over svmlight text. It finds the number of rows, the labels, the range of indices,
// and the positions where every k-th row begins.
//
// It reads only the label, the first index and the last index of each row, so it is several times
// as fast as parsing. Memory grows only with the number of blocks and of distinct labels.
#pragma once

#include <unordered_set>

#include "marginwise/text/svmlight_row.hpp"

namespace marginwise::text {

class SvmlightScan : public SvmlightRows {
  public:
    // With more distinct labels than this, has_many_labels() is true: they are not classes.
    static constexpr Index kMostLabels = Index{1} << 16;

    // `block`: the number of rows per block.
    SvmlightScan(Index base, Index n_features, Index block)
        : SvmlightRows(base, n_features), block_(block) {
        require(block > 0, "a block has at least one row");
    }

    // Reads whole lines, which must follow those of the last call. Only the last line of the file
    // may lack its '\n'. Throws like SvmlightParser::parse.
    void scan(Bytes text) {
        Index most = std::numeric_limits<Index>::max();
        with_room_behind(text, 0, [&](auto p, auto end, Index at) {
            at += bytes_;
            return for_each_row(p, end, most, [&, first = p](const char* q) {
                if (rows_ % block_ == 0) begin_block(at + (line_start() - first));
                ++rows_;
                return row(q, line_end(q, end));
            });
        });
        bytes_ += text.size;
    }

    Index rows() const { return rows_; }
    Index bytes() const { return bytes_; }
    // Whether all labels are integers that a double represents exactly.
    bool has_integers_only() const { return integers_; }
    bool has_many_labels() const { return many_; }

    // The distinct labels, sorted; at most kMostLabels of them.
    Array<double> labels() const {
        Array<double> sorted(labels_.begin(), labels_.end());
        std::sort(sorted.begin(), sorted.end());
        return sorted;
    }
    // For each block, the position in the file and the number of the line of its first row.
    Array<std::int64_t> offsets() const { return offsets_; }
    Array<std::int64_t> lines() const { return lines_; }

  private:
    void begin_block(Index offset) {
        offsets_.push_back(offset);
        lines_.push_back(line());
    }

    // Reads the label, the first index and the last one; returns the end of the line.
    const char* row(const char* p, const char* newline) {
        double y = 0.0;
        p = label(p, y);
        if (y != last_label_ || labels_.empty()) note_label(y);
        p = skip_blanks(query(p));
        if (ends_row(*p)) return newline;
        const void* comment = std::memchr(p, '#', static_cast<std::size_t>(newline - p));
        const char* q = comment == nullptr ? newline : static_cast<const char*>(comment);
        while (is_blank(q[-1])) --q;
        while (q > p && !is_blank(q[-1])) --q;
        note_indices(checked_index(p), checked_index(q));
        return newline;
    }

    std::int64_t checked_index(const char* p) const {
        std::int64_t written = 0;
        index(p, written);
        check_index(p, written, base_ - 1);
        return written;
    }

    void note_label(double y) {
        constexpr double kExact = 9007199254740992.0;  // 2^53
        last_label_ = y;
        integers_ = integers_ && std::abs(y) <= kExact && y == std::floor(y);
        if (Index(labels_.size()) < kMostLabels)
            labels_.insert(y);
        else
            many_ = many_ || labels_.count(y) == 0;
    }

    Index block_, rows_ = 0, bytes_ = 0;
    Array<std::int64_t> offsets_, lines_;
    std::unordered_set<double> labels_;
    double last_label_ = 0.0;
    bool integers_ = true, many_ = false;
};

}  // namespace marginwise::text
