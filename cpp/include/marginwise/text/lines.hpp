// Text as lines: blanks, rows and the ends of buffers.
//
// A row is a line that has content before its comment, which begins with '#'. All functions that
// take a pointer into a line rely on the '\n' at its end.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "marginwise/base/types.hpp"

namespace marginwise::text {

using Bytes = View<std::uint8_t>;

// Whether c is whitespace for Python's bytes.split(), except for the end of a line.
inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
inline bool ends_row(char c) { return c == '\n' || c == '#'; }
inline bool ends_token(char c) { return is_blank(c) || ends_row(c); }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}
inline const char* token_end(const char* p) {
    while (!ends_token(*p)) ++p;
    return p;
}
// The '\n' at or after p.
inline const char* line_end(const char* p, const char* end) {
    return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
}

// A token for error messages: in quotes, shortened, with escapes for bytes that are not printable
// ASCII.
inline std::string quoted(const char* p) {
    constexpr Index kLongest = 24;
    const char* const end = token_end(p);
    std::string shown = "'";
    for (const char* q = p; q < end && q < p + kLongest; ++q) {
        constexpr char kHex[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(*q);
        if (byte > ' ' && byte < 127)
            shown += *q;
        else
            shown.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
    return shown + (end - p > kLongest ? "...'" : "'");
}

// The content of a line: skips blanks, and the byte order mark at the beginning of a file.
inline const char* line_content(const char* p, Index line) {
    if (line == 1 && std::strncmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    return skip_blanks(p);
}

// The progress of a call in a text: the byte after the last line read, and the number of rows read.
struct Progress {
    Index position, rows;
};

// Processes text so that reading eight bytes at any position is safe.
//
// Calls work(begin, end, at) for the lines of a text from byte `from` except the last few; `begin`
// points to byte `at` of the text. The last lines are copied into a padded buffer, with a missing
// '\n' added, and `work` is called for the copy. `work` returns where it stopped: the end of its
// lines, or earlier if it has done enough. Returns the byte of the text at which `work` stopped.
template <class Work>
Index with_room_behind(Bytes text, Index from, Work&& work) {
    constexpr Index kAhead = 16;
    require(from >= 0 && from <= text.size, "the first byte is outside the text");
    const char* const start = reinterpret_cast<const char*>(text.data);
    Index tail = std::max(from, text.size - kAhead);
    while (tail > from && start[tail - 1] != '\n') --tail;
    if (from < tail) {
        const Index stopped = work(start + from, start + tail, from) - start;
        if (stopped != tail) return stopped;
    }
    if (tail == text.size) return tail;
    std::string copy(start + tail, start + text.size);
    if (copy.back() != '\n') copy += '\n';
    const auto length = copy.size();
    copy.append(static_cast<std::size_t>(kAhead), '\n');
    const Index done = work(copy.data(), copy.data() + length, tail) - copy.data();
    return tail + std::min(done, text.size - tail);
}

}  // namespace marginwise::text
