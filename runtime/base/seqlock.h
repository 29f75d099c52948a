// A plain value that one thread publishes and any thread reads without making the writer wait.
// Store: one writer thread at a time. Load: any thread; retries while a Store is in progress. T is
// trivially copyable.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>

namespace quire {

template <typename T>
class Seqlock {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Seqlock() { Store(T{}); }
  Seqlock(const Seqlock&) = delete;
  Seqlock& operator=(const Seqlock&) = delete;

  void Store(const T& value) {
    const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    const char* bytes = reinterpret_cast<const char*>(&value);
    for (size_t i = 0; i < kWords; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + i * 8, WordBytes(i));
      // Release, so that a reader that sees the word also sees the odd sequence before it (a fence
      // would do, but thread sanitizers do not follow fences). Free on x86.
      words_[i].store(word, std::memory_order_release);
    }
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  T Load() const {
    std::array<uint64_t, kWords> copy;
    while (true) {
      const uint64_t before = sequence_.load(std::memory_order_acquire);
      if (before % 2 == 0) {
        for (size_t i = 0; i < kWords; ++i) copy[i] = words_[i].load(std::memory_order_acquire);
        if (sequence_.load(std::memory_order_relaxed) == before) break;
      }
      std::this_thread::yield();
    }
    T value;
    std::memcpy(static_cast<void*>(&value), copy.data(), sizeof(T));
    return value;
  }

 private:
  static constexpr size_t kWords = (sizeof(T) + 7) / 8;
  static constexpr size_t WordBytes(size_t i) { return i + 1 < kWords ? 8 : sizeof(T) - 8 * i; }

  std::atomic<uint64_t> sequence_{0};  // odd while a Store is in progress
  std::array<std::atomic<uint64_t>, kWords> words_;
};

}  // namespace quire
