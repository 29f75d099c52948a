// A clock that moves only when told. Thread-safe.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace quire {

class ManualClock final : public Clock {
 public:
  explicit ManualClock(MonotonicTime start = MonotonicTime{1'000'000'000}) : nanos_(Nanos(start)) {}
  MonotonicTime Now() const override { return MonotonicTime{nanos_.load()}; }
  void Advance(int64_t nanos) { nanos_.fetch_add(nanos); }
  void AdvanceMillis(int64_t millis) { Advance(millis * 1'000'000); }

 private:
  std::atomic<int64_t> nanos_;
};

}  // namespace quire
