// One zeroed, 2-MiB-aligned range of anonymous memory, sized once, handed out front to back. Backed
// by huge pages where the kernel grants them. Not thread-safe while allocating; the memory lives as
// long as the arena.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"

namespace quire {

class Arena {
 public:
  Arena() = default;
  // Reserves `bytes` (rounded up to 2 MiB). RESOURCE_EXHAUSTED with both numbers if the system
  // refuses.
  static absl::StatusOr<Arena> Create(size_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  // Next `bytes`, 64-byte aligned. CHECK-fails if the arena is too small: sizes are computed
  // before.
  std::span<std::byte> Take(size_t bytes);
  template <typename T>
  std::span<T> TakeArray(size_t count) {
    return {reinterpret_cast<T*>(Take(count * sizeof(T)).data()), count};
  }

  // Writes to every page, so that later use faults nothing. Idempotent. With parts > 1 only to the
  // pages of one part: threads share the work by calling with different ones (on a fresh virtual
  // machine a page costs microseconds).
  void Touch(size_t part = 0, size_t parts = 1);

  size_t size() const { return size_; }
  size_t used() const { return used_; }
  static constexpr size_t Align(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

 private:
  std::byte* base_ = nullptr;  // aligned start
  std::byte* mapping_ = nullptr;
  size_t mapping_size_ = 0, size_ = 0, used_ = 0;
};

}  // namespace quire
