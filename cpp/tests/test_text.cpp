// Text: decimals beside the C library's, rows however a text is cut, the first pass beside the
// parser, and errors that point to their line and column.

#include <cstdlib>
#include <random>

#include "check.hpp"
#include "marginwise/text/svmlight.hpp"
#include "marginwise/text/svmlight_scan.hpp"

using namespace marginwise;
using namespace marginwise::text;

namespace {

constexpr Index kAll = Index{1} << 40;

// A copy without room behind, so that the sanitizers find reads beyond the end.
struct Copy {
    Vector<std::uint8_t> bytes;
    explicit Copy(const std::string& text) : bytes(text.begin(), text.end()) {
        bytes.shrink_to_fit();
    }
    operator Bytes() const { return {bytes.data(), bytes.size()}; }
};

LabelledRows parsed(const std::string& text, Index base = 1, Index n_features = kNone) {
    SvmlightParser parser(base, n_features);
    const Copy copy(text);
    const Progress progress = parser.parse(copy, 0, kAll);
    CHECK(progress.position == Bytes(copy).size);
    CHECK(progress.rows == parser.rows());
    return parser.take();
}

void same_rows(const LabelledRows& a, const LabelledRows& b, const std::string& what) {
    CHECK_SAY(a.labels == b.labels && a.indptr == b.indptr && a.indices == b.indices &&
                  a.values == b.values,
              what);
}

// A number as people and programs write it.
std::string random_number(std::mt19937& random, Index exponents = 40) {
    const auto below = [&](Index n) { return static_cast<Index>(random()) % n; };
    std::string number;
    if (below(3) == 0) number += below(4) == 0 ? '+' : '-';
    const Index whole = below(10) == 0 ? below(25) : below(4);
    const Index fraction = below(3) == 0 ? below(30) : below(10);
    for (Index k = 0; k < whole; ++k) number += static_cast<char>('0' + below(10));
    if (fraction > 0 || whole == 0) {
        number += '.';
        for (Index k = 0; k < std::max<Index>(fraction, 1); ++k)
            number += static_cast<char>('0' + (below(3) == 0 ? 0 : below(10)));
    }
    if (below(5) == 0) {
        number += below(2) == 0 ? 'e' : 'E';
        if (below(2) == 0) number += below(3) == 0 ? '+' : '-';
        number += std::to_string(below(below(2) == 0 ? 10 : exponents));
    }
    return number;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void reads_as_the_library_does(const std::string& number) {
    const double expected = std::strtod(number.c_str(), nullptr);
    const std::string text = number + "\n        ";
    Decimal x;
    const char* const end = read_decimal(text.data(), x);
    CHECK_SAY(end == text.data() + number.size(), "not read to its end: " + number);
    CHECK_SAY(to_double(x, text.data(), end) == expected, "as double: " + number);
    const auto rounded = static_cast<float>(expected);
    CHECK_SAY(same_bits(to_float(x, text.data(), end), rounded), "as float: " + number);
    float quick = 0.0f;
    if (quick_value(text.data(), quick) != nullptr)
        CHECK_SAY(same_bits(quick, rounded), "as float, quickly: " + number);
}

std::string random_rows(std::mt19937& random, Index n) {
    std::string text;
    for (Index r = 0; r < n; ++r) {
        if (random() % 8 == 0) text += random() % 2 == 0 ? "\n" : "  # 1 1:2\n";
        text += random() % 2 == 0 ? "+1" : "-1";
        if (random() % 4 == 0) text += " qid:7";
        Index index = 0;
        for (auto k = random() % 9; k > 0; --k) {
            index += 1 + static_cast<Index>(random() % (random() % 20 == 0 ? 100'000 : 20));
            text += (random() % 9 == 0 ? "\t " : " ") + std::to_string(index) + ":" +
                    random_number(random, 10);
        }
        if (random() % 6 == 0) text += " # end";
        text += random() % 5 == 0 ? "\r\n" : "\n";
    }
    return text;
}

std::string error_of(const std::string& text, Index base, Index n_features, Index& line) {
    SvmlightParser parser(base, n_features);
    try {
        parser.parse(Copy(text), 0, kAll);
    } catch (const std::invalid_argument& error) {
        line = parser.line();
        return error.what();
    }
    return "nothing was thrown";
}

void fails(const std::string& text, Index line, const std::string& words, Index base = 1,
           Index n_features = kNone) {
    Index at = kNone;
    const std::string said = error_of(text, base, n_features, at);
    CHECK_SAY(at == line && said.find(words) != std::string::npos,
              "line " + std::to_string(at) + ": " + said + " of: " + text);
}

}  // namespace

TEST(digits_of_words) {
    const std::string text = "0123456789abcdef/:";
    CHECK(leading_digits(load_word(text.data())) == 8);
    CHECK(leading_digits(load_word(text.data() + 4)) == 6);
    CHECK(leading_digits(load_word(text.data() + 10)) == 0);
    for (const std::string other : {"/", ":", " ", "\n", "\xB0", "\xFF", ".", "-"})
        CHECK(leading_digits(load_word(("12" + other + "45678").data())) == 2);
    CHECK(value_of_8(load_word("12345678")) == 12345678);
    CHECK(value_of(load_word("98765432"), 3) == 987);
    CHECK(value_of(load_word("98765432"), 0) == 0);
}

TEST(numbers_are_rounded_as_the_library_rounds_them) {
    std::mt19937 random(1);
    for (int k = 0; k < 200'000; ++k) reads_as_the_library_does(random_number(random));
    for (const char* number : {"16777217",
                               "16777219",
                               "9007199254740993",
                               "0.1",
                               "1e22",
                               "1e23",
                               "1e-22",
                               "1e-23",
                               "3.4028235e38",
                               "3.4028235677973366e38",
                               "3.4028236e38",
                               "1e39",
                               "1e308",
                               "1e309",
                               "1e999999999999",
                               "1e-45",
                               "7.006492321624085e-46",
                               "7.006492321624086e-46",
                               "1e-46",
                               "5e-324",
                               "2e-324",
                               "1e-999999999999",
                               "0e999",
                               "1.000000059604644775390625",
                               "1.0000000596046447753906250001",
                               "1.00000005960464477539062499999999",
                               "0.00000000000000000000000000000000000000000000117549435",
                               "18446744073709551615",
                               "18446744073709551616",
                               "99999999999999999999999999999999999999",
                               "179769313486231580793e289",
                               "99e307"})
        reads_as_the_library_does(number);
    for (const float x : {1.0f, 3.14159274f, 1e-38f, 16777216.0f})  // middles between two floats
        for (const char* form : {"%.30f", "%.60f", "%.17g", "%.25e"}) {
            char shown[128];
            std::snprintf(shown, sizeof shown, form,
                          (static_cast<double>(x) + std::nextafter(x, 1e30f)) / 2);
            reads_as_the_library_does(shown);
        }
}

TEST(what_is_not_a_number_is_not_read) {
    Decimal x;
    float value = 0.0f;
    for (const char* text : {"\n       ", "-\n       ", ".\n      ", "-.\n      ", "+-1\n     ",
                             "e5\n      ", ".e5\n     ", "1e\n     ", "1e+\n     ", "nan\n     "}) {
        CHECK_SAY(read_decimal(text, x) == nullptr, text);
        CHECK_SAY(quick_value(text, value) == nullptr, text);
    }
}

TEST(a_row_by_hand) {
    const LabelledRows rows = parsed(
        "# two rows\n\n"
        "+1 qid:3 1:0.5 3:-2e1 12345678:.25 # comment\r\n"
        "\t-2.5\n");
    CHECK(rows.labels == Array<double>({1.0, -2.5}));
    CHECK(rows.indptr == Array<std::int64_t>({0, 3, 3}));
    CHECK(rows.indices == Array<std::int32_t>({0, 2, 12345677}));
    CHECK(rows.values == Array<float>({0.5f, -20.0f, 0.25f}));
}

TEST(a_byte_order_mark_and_a_missing_line_end) {
    const LabelledRows rows = parsed(
        "\xEF\xBB\xBF"
        "1 2:3\n0 2:4");
    CHECK(rows.labels == Array<double>({1.0, 0.0}));
    CHECK(rows.values == Array<float>({3.0f, 4.0f}));
    fails(
        "1 2:3\n\xEF\xBB\xBF"
        "1 2:3\n",
        2, "column 1: expected a number as label, got '\\xef");
}

TEST(rows_do_not_depend_on_how_a_text_is_cut) {
    std::mt19937 random(2);
    for (int round = 0; round < 30; ++round) {
        const std::string text = random_rows(random, 60);
        const LabelledRows whole = parsed(text);
        SvmlightParser parser(1, kNone);
        parser.expect(static_cast<Index>(text.size()));
        std::size_t from = 0;
        while (from < text.size()) {
            std::size_t end = from + 1 + random() % 200;
            end = end >= text.size() ? text.size() : text.find('\n', end) + 1;
            const Copy part(text.substr(from, end - from));
            Index at = 0;
            while (at < Bytes(part).size)
                at = parser.parse(part, at, 1 + static_cast<Index>(random() % 5)).position;
            from = end;
        }
        CHECK(parser.line() == 1 + std::count(text.begin(), text.end(), '\n'));
        same_rows(parser.take(), whole, "in parts");
    }
}

TEST(skipped_rows_are_counted) {
    std::mt19937 random(3);
    const std::string text = random_rows(random, 50);
    const LabelledRows whole = parsed(text);
    const Copy copy(text);
    for (Index first = 0; first <= 50; ++first) {
        SvmlightParser parser(1, kNone);
        const Progress skipped = parser.skip(copy, 0, first);
        CHECK(skipped.rows == first);
        const Progress rest = parser.parse(copy, skipped.position, kAll);
        CHECK(rest.rows == 50 - first);
        CHECK(std::equal(whole.labels.begin() + first, whole.labels.end(),
                         parser.take().labels.begin()));
    }
    CHECK(SvmlightParser(1, kNone).skip(copy, 0, 60).rows == 50);
}

TEST(the_first_pass_agrees_with_the_parser) {
    std::mt19937 random(4);
    for (int round = 0; round < 30; ++round) {
        const std::string text = random_rows(random, 70);
        SvmlightParser parser(1, kNone);
        parser.parse(Copy(text), 0, kAll);
        SvmlightScan scan(1, kNone, 16);
        const std::size_t cut = text.find('\n', text.size() / 2) + 1;
        scan.scan(Copy(text.substr(0, cut)));
        scan.scan(Copy(text.substr(cut)));
        CHECK(scan.rows() == 70 && scan.line() == parser.line());
        CHECK(scan.least() == parser.least() && scan.greatest() == parser.greatest());
        CHECK(scan.line_of_greatest() == parser.line_of_greatest());
        CHECK(scan.labels() == Array<double>({-1.0, 1.0}) && scan.has_integers_only());
        const LabelledRows rows = parser.take();
        CHECK(scan.offsets().size() == 5);
        for (Index block = 0; block < 5; ++block) {
            SvmlightParser some(1, kNone);
            some.set_line(scan.lines()[block]);
            some.parse(Copy(text), scan.offsets()[block], 1);
            const LabelledRows found = some.take();
            const Index r = 16 * block;
            CHECK(found.labels[0] == rows.labels[r]);
            CHECK(std::equal(found.values.begin(), found.values.end(),
                             rows.values.begin() + rows.indptr[r]));
            CHECK(scan.lines()[block] ==
                  1 + std::count(text.begin(), text.begin() + scan.offsets()[block], '\n'));
        }
    }
}

TEST(labels_of_the_first_pass) {
    SvmlightScan scan(1, kNone, 2);
    scan.scan(Copy("2\n1.5 1:1\n2 1:1 # 3:1\n-0\n0"));
    CHECK(scan.labels() == Array<double>({0.0, 1.5, 2.0}));
    CHECK(!scan.has_integers_only() && !scan.has_many_labels());
    CHECK(scan.greatest() == 1);
    SvmlightScan large(1, kNone, 2);
    large.scan(Copy("9007199254740994\n"));
    CHECK(!large.has_integers_only());
}

TEST(where_the_base_is_not_known_indices_are_stored_as_written) {
    CHECK(parsed("1 0:1 7:1\n", kNone).indices == Array<std::int32_t>({0, 7}));
    CHECK(parsed("1 0:1 7:1\n", 0).indices == Array<std::int32_t>({0, 7}));
    CHECK(parsed("1 1:1 7:1\n", 1).indices == Array<std::int32_t>({0, 6}));
    CHECK(parsed("1 7:1\n", kNone, 7).indices == Array<std::int32_t>({7}));
    CHECK(parsed("1 2147483647:1\n", 1).indices == Array<std::int32_t>({2147483646}));
}

TEST(errors_point_to_what_is_wrong) {
    fails("1 1:1\nx 1:1\n", 2, "column 1: expected a number as label, got 'x'");
    fails("nan 1:1\n", 1, "column 1: expected a number as label, got 'nan'");
    fails("1e999 1:1\n", 1, "column 1: the label '1e999' is too large");
    fails("  3:1 4:2\n", 1, "column 3: expected a label, got '3:1'");
    fails("1,3 4:2\n", 1, "column 1: expected one label, got '1,3'");
    fails("1 0:1\n", 1, "column 3: index 0 in a one-based file");
    fails("1 3:1 3:2\n", 1, "column 7: index 3 follows 3");
    fails("1 3:1\n\n# 1\n1 3:1 2:2\n", 4, "column 7: index 2 follows 3");
    fails("1 -3:1\n", 1, "column 3: expected index:value, got '-3:1'");
    fails("1 3\n", 1, "column 4: expected ':' after the index in '3'");
    fails("1 3 :1\n", 1, "column 4: expected ':'");
    fails("1 3:\n", 1, "column 5: expected a finite number as value, got ''");
    fails("1 3:x\n", 1, "column 5: expected a finite number as value, got 'x'");
    fails("1 3:nan\n", 1, "column 5: expected a finite number as value, got 'nan'");
    fails("1 3:-inf\n", 1, "column 5: expected a finite number as value, got '-inf'");
    fails("1 3:1_0\n", 1, "column 5: expected a finite number as value, got '1_0'");
    fails("1 3:1:2\n", 1, "column 5: expected a finite number as value, got '1:2'");
    fails("1 3:-1e39\n", 1, "column 5: the value '-1e39' is outside the range of float32");
    fails("1 3:340282400000000000000000000000000000000\n", 1, "column 5: the value '3402824");
    fails("1 2147483648:1\n", 1, "column 3: the index in '2147483648:1' is too large");
    fails("1 99999999999999999999999:1\n", 1, "is too large; expected at most 2147483647");
    fails("1 785:1\n", 1, "column 3: index 785 is beyond n_features=784; expected at most 784", 1,
          784);
    fails("1 784:1\n", 1, "column 3: index 784 is beyond n_features=784; expected at most 783", 0,
          784);
    fails("1 qid:x 3:1\n", 1, "column 3: expected an integer as query id, got 'qid:x'");
    fails("1 3:1 qid:4\n", 1, "column 7: expected index:value, got 'qid:4'");
    fails(std::string("1 3:1\0", 6) + "\n", 1, "got '1\\x00'");
}

TEST(rows_before_an_error_stay_parsed) {
    SvmlightParser parser(1, kNone);
    CHECK_THROWS("column 7", parser.parse(Copy("1 1:1\n2 2:2\n3 3:3 2:2\n4 4:4\n"), 0, kAll));
    CHECK(parser.line() == 3);
    const LabelledRows rows = parser.take();
    CHECK(rows.labels == Array<double>({1.0, 2.0}));
    CHECK(rows.indices == Array<std::int32_t>({0, 1}));
    CHECK(parser.rows() == 0);
}

// The sanitizers look for reads and writes beyond the text and the arrays.
TEST(changed_bytes_are_read_or_refused) {
    std::mt19937 random(5);
    const std::string some = "0123456789:.+-eE #\n\t\r,q";
    Index refused = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string text = random_rows(random, 1 + static_cast<Index>(random() % 5));
        for (auto k = random() % 4; k > 0; --k) {
            const auto at = random() % text.size();
            text[at] =
                random() % 9 == 0 ? static_cast<char>(random()) : some[random() % some.size()];
        }
        text.resize(1 + random() % text.size());
        SvmlightScan scan(1, kNone, 2);
        try {
            const LabelledRows rows = parsed(text);
            scan.scan(Copy(text));  // refuses nothing that the parser reads
            CHECK_SAY(scan.rows() == rows.labels.size(), text);
            CHECK_SAY(rows.indices.size() == rows.indptr.back(), text);
            CHECK_SAY(std::all_of(rows.values.begin(), rows.values.end(),
                                  [](float x) { return std::isfinite(x); }),
                      text);
        } catch (const std::invalid_argument& error) {
            CHECK_SAY(std::strncmp(error.what(), "column ", 7) == 0, error.what());
            ++refused;
        }
    }
    CHECK(refused > 1000 && refused < 3500);
}

TEST(arguments_are_checked) {
    SvmlightParser parser(1, kNone);
    CHECK_THROWS("outside the text", parser.parse(Copy("1\n"), 3, 1));
    CHECK_THROWS("outside the text", parser.skip(Copy("1\n"), -1, 1));
    CHECK_THROWS("0 or 1", SvmlightParser(2, kNone));
    CHECK_THROWS("at least one row", SvmlightScan(1, kNone, 0));
    CHECK(parser.parse(Copy(""), 0, kAll).rows == 0);
}
