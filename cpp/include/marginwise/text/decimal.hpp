// Decimal numbers in text, read eight digits at a time.
//
// Results are the correctly rounded double, or that double rounded to float. Most numbers need a
// single operation on exact doubles: m / 10^k with m <= 2^53 and k <= 22. For floats, longer
// numbers are computed with a small error, which matters only close to the midpoint of two floats.
// There, and for doubles with many digits, the library's conversion decides.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

#ifndef __cpp_lib_to_chars  // libraries whose from_chars converts integers only
#include <clocale>
#include <cstdlib>
#if defined(__APPLE__) || defined(__FreeBSD__)
#include <xlocale.h>
#endif
#endif

namespace marginwise::text {

using Word = std::uint64_t;  // eight characters, the first one in the lowest byte

// Loads eight bytes, all of which must be readable.
inline Word load_word(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

// The number of digits that a word begins with, 0 to 8.
inline int leading_digits(Word word) {
    const Word value = word ^ 0x3030303030303030;  // bytes 0 to 9 are digits
    const Word other = (value | (value + 0x0606060606060606)) & 0xF0F0F0F0F0F0F0F0;
    return other == 0 ? 8 : __builtin_ctzll(other) >> 3;  // carries affect later bytes only
}

// The number that eight digits represent.
inline Word value_of_8(Word word) {
    word ^= 0x3030303030303030;
    word = word * 10 + (word >> 8);  // every other byte: the value of two digits
    return ((word & 0x000000FF000000FF) * 0x000F424000000064 +
            ((word >> 16) & 0x000000FF000000FF) * 0x0000271000000001) >>
           32;
}

// The number that the first n digits of a word represent, n < 8; 0 for n = 0.
inline Word value_of(Word word, int n) {
    const Word zeros = 0x3030303030303030;
    return value_of_8((((word ^ zeros) << 8) << (8 * (7 - n))) ^ zeros);
}

// Powers of ten, rounded; exact to 10^22.
inline constexpr int kExactPower = 22, kLastPower = 65;
inline constexpr double kPowers[kLastPower + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
    1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27,
    1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41,
    1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54, 1e55,
    1e56, 1e57, 1e58, 1e59, 1e60, 1e61, 1e62, 1e63, 1e64, 1e65};
inline constexpr Word kIntegerPowers[8] = {1,      10,      100,       1'000,
                                           10'000, 100'000, 1'000'000, 10'000'000};
// Numbers below kRoom[n] = 10^(19 - n) have room for n more digits.
inline constexpr Word kRoom[9] = {
    10'000'000'000'000'000'000U, 1'000'000'000'000'000'000, 100'000'000'000'000'000,
    10'000'000'000'000'000,      1'000'000'000'000'000,     100'000'000'000'000,
    10'000'000'000'000,          1'000'000'000'000,         100'000'000'000};

// |x| = m * 10^exponent, or up to (m + 1) * 10^exponent if digits were cut off.
struct Decimal {
    Word m = 0;
    int exponent = 0;
    bool negative = false, cut = false;

    bool is_exact() const {
        return !cut && m <= (Word{1} << 53) && exponent >= -kExactPower && exponent <= kExactPower;
    }
    // m * 10^exponent, -kLastPower <= exponent <= kLastPower
    double product() const {
        const auto x = static_cast<double>(m);
        return exponent < 0 ? x / kPowers[-exponent] : x * kPowers[exponent];
    }
};

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads digits and appends them to those of `to`; returns their end. Keeps at most 19 digits.
inline const char* append_digits(const char* p, Decimal& to, bool fraction) {
    for (; is_digit(*p); ++p) {
        if (to.m < 1'000'000'000'000'000'000) {
            to.m = to.m * 10 + static_cast<Word>(*p - '0');
            to.exponent -= fraction;
        } else {
            to.cut = to.cut || *p != '0';
            to.exponent += !fraction;
        }
    }
    return p;
}

// Reads [+-]digits[.digits][e[+-]digits], where either group of digits may be empty.
// Returns the end of the number, or nullptr if there is none at p. The text must end with a
// character that no number contains, such as a line break.
inline const char* read_decimal(const char* p, Decimal& to) {
    to = Decimal();
    to.negative = *p == '-';
    p += *p == '-' || *p == '+';
    const char* const first = p;
    p = append_digits(p, to, false);
    auto digits = p - first;
    if (*p == '.') {
        const char* const end = append_digits(p + 1, to, true);
        digits += end - (p + 1);
        p = end;
    }
    if (digits == 0) return nullptr;
    if (*p != 'e' && *p != 'E') return p;
    const char* q = p + 1;
    const bool down = *q == '-';
    q += *q == '-' || *q == '+';
    if (!is_digit(*q)) return nullptr;
    int exponent = 0;
    for (; is_digit(*q); ++q)
        if (exponent < 100'000'000) exponent = exponent * 10 + (*q - '0');
    to.exponent += down ? -exponent : exponent;
    return q;
}

// The correctly rounded double of a number in text, without sign; `beyond` if it is outside the
// range of doubles.
inline double slow_double(const char* first, const char* last, [[maybe_unused]] double beyond) {
#ifdef __cpp_lib_to_chars
    double value = 0.0;
    const auto [_, error] = std::from_chars(first, last, value);
    return error == std::errc::result_out_of_range ? beyond : value;
#else
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    return strtod_l(std::string(first, last).c_str(), nullptr, plain);
#endif
}

// The double nearest to a number that read_decimal read from [first, last).
inline double to_double(const Decimal& x, const char* first, const char* last) {
    const double beyond = x.exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    double size = 0.0;
    if (x.is_exact())
        size = x.product();
    else if (x.m != 0)
        size = slow_double(first + (*first == '-' || *first == '+'), last, beyond);
    return x.negative ? -size : size;
}

// The same, rounded to float.
inline float to_float(const Decimal& x, const char* first, const char* last) {
    if (x.exponent >= -kLastPower && x.exponent <= kLastPower) {
        // Three roundings and the digits cut off change the product by less than 6 * 2^-53.
        const double size = x.product();
        const auto low = static_cast<float>(size * (1.0 - 0x1p-50));
        const auto high = static_cast<float>(size * (1.0 + 0x1p-50));
        if (low == high) return x.negative ? -low : low;
    }
    return static_cast<float>(to_double(x, first, last));
}

}  // namespace marginwise::text
