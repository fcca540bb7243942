// Tests without a framework. TEST(name) { ... } lists a test, CHECK reports what does not hold and
// continues, CHECK_THROWS wants an exception whose message contains some words. Included once per
// program, whose main() runs all tests and counts the failures.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

inline int failures = 0;

struct Listed {
    Listed(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& what) {
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
    ++failures;
}

template <class F>
void throws(const char* file, int line, const std::string& words, F f) {
    try {
        f();
    } catch (const std::exception& error) {
        if (std::string(error.what()).find(words) == std::string::npos)
            fail(file, line, "expected '" + words + "' in: " + error.what());
        return;
    }
    fail(file, line, "nothing was thrown; expected: " + words);
}

inline int run_all() {
    for (const Test& test : tests()) {
        const int before = failures;
        try {
            test.run();
        } catch (const std::exception& error) {
            fail(test.name, 0, std::string("threw: ") + error.what());
        }
        std::printf("%s %s\n", failures == before ? "ok    " : "FAILED", test.name);
    }
    return failures == 0 && !tests().empty() ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                   \
    static void name();                              \
    static const check::Listed name##_(#name, name); \
    static void name()
#define CHECK(condition) \
    ((condition) ? void() : check::fail(__FILE__, __LINE__, "does not hold: " #condition))
#define CHECK_SAY(condition, what) ((condition) ? void() : check::fail(__FILE__, __LINE__, what))
#define CHECK_THROWS(words, ...) \
    check::throws(__FILE__, __LINE__, words, [&] { (void)(__VA_ARGS__); })

int main() { return check::run_all(); }
