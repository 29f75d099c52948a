// The one reader of binary file structure: typed little-endian reads, strings and skips inside a
// range of a file, and the checked arithmetic of sizes. Every read is bounded before it happens;
// memory is one window of fixed size. One thread; the file outlives the cursor.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/loader/model_file.h"

namespace quire {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

// Size arithmetic; nullopt on overflow. `alignment` is a power of two.
constexpr std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  if (a > UINT64_MAX - b) return std::nullopt;
  return a + b;
}
constexpr std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  if (b != 0 && a > UINT64_MAX / b) return std::nullopt;
  return a * b;
}
constexpr std::optional<uint64_t> CheckedAlignUp(uint64_t a, uint64_t alignment) {
  const std::optional<uint64_t> raised = CheckedAdd(a, alignment - 1);
  if (!raised) return std::nullopt;
  return *raised & ~(alignment - 1);
}

class ByteCursor {
 public:
  // Reads [begin, end) of the file; end is capped at the file's size.
  ByteCursor(const ModelFile& file, uint64_t begin, uint64_t end);
  explicit ByteCursor(const ModelFile& file) : ByteCursor(file, 0, file.size()) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return end_ - offset_; }

  // A number of its stored width.
  template <typename T>
    requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>)
  absl::StatusOr<T> Read() {
    std::array<std::byte, sizeof(T)> bytes;
    if (absl::Status status = Copy(bytes); !status.ok()) return status;
    return std::bit_cast<T>(bytes);
  }
  // One byte, 0 or 1.
  absl::StatusOr<bool> ReadBool();
  // A 64-bit length of at most max_bytes, then that many bytes.
  absl::StatusOr<std::string> ReadString(uint64_t max_bytes);
  absl::Status SkipString(uint64_t max_bytes);
  absl::Status Skip(uint64_t bytes);

  // What is being read ("key general.name"), for the errors that follow.
  void SetContext(std::string context) { context_ = std::move(context); }
  // INVALID_ARGUMENT "PATH: offset N, CONTEXT: WHAT".
  absl::Status Error(std::string_view what) const { return ErrorAt(offset_, what); }
  absl::Status ErrorAt(uint64_t offset, std::string_view what) const;

 private:
  absl::Status Copy(std::span<std::byte> out);
  absl::StatusOr<uint64_t> ReadLength(uint64_t max_bytes);
  absl::Status CheckRemaining(uint64_t bytes) const;

  const ModelFile* file_;
  uint64_t offset_, end_;
  uint64_t window_begin_ = 0;
  std::vector<std::byte> window_;
  std::string context_;
};

}  // namespace quire
