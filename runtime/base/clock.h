// Monotonic time as a value, and the clock that reads it. Code that needs time takes a Clock (or a
// MonotonicTime), so that tests inject their own. Clock implementations are thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace quire {

enum class MonotonicTime : int64_t {
  kInfinite = INT64_MAX
};  // nanoseconds since an arbitrary start

constexpr int64_t Nanos(MonotonicTime t) { return static_cast<int64_t>(t); }
constexpr double SecondsBetween(MonotonicTime from, MonotonicTime to) {
  return static_cast<double>(Nanos(to) - Nanos(from)) * 1e-9;
}
// Saturates at kInfinite.
constexpr MonotonicTime AddNanos(MonotonicTime t, int64_t nanos) {
  return nanos > INT64_MAX - Nanos(t) ? MonotonicTime::kInfinite : MonotonicTime{Nanos(t) + nanos};
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
};

// std::chrono::steady_clock.
class SteadyClock final : public Clock {
 public:
  MonotonicTime Now() const override {
    return MonotonicTime{std::chrono::duration_cast<std::chrono::nanoseconds>(
                             std::chrono::steady_clock::now().time_since_epoch())
                             .count()};
  }
};

}  // namespace quire
