// Time limits and the time spent in a phase.
#pragma once

#include <algorithm>
#include <chrono>

namespace marginwise {

using Clock = std::chrono::steady_clock;

class Deadline {
  public:
    explicit Deadline(double seconds)
        : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(std::min(seconds, 1e9)))) {}
    bool passed() const { return Clock::now() >= end_; }

  private:
    Clock::time_point end_;
};

// Adds the seconds of its lifetime to `total`.
class Stopwatch {
  public:
    explicit Stopwatch(double& total) : total_(total), start_(Clock::now()) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

  private:
    double& total_;
    Clock::time_point start_;
};

}  // namespace marginwise
