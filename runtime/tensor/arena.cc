#include "runtime/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

// Ownership: mapping_/mapping_size_ is what munmap gets; base_ is its first 2-MiB boundary. A
// moved-from or default arena has neither and size 0.
namespace quire {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

}  // namespace

absl::StatusOr<Arena> Arena::Create(size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", bytes, " bytes: beyond the address space"));
  }
  const size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  Arena arena;
  if (size == 0) return arena;
  const size_t mapping_size = size + kHugePage;
  void* mapping =
      mmap(nullptr, mapping_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot reserve ", mapping_size,
                                                     " bytes of memory (", bytes,
                                                     " wanted): ", strerror(errno)));
  }
  arena.mapping_ = static_cast<std::byte*>(mapping);
  arena.mapping_size_ = mapping_size;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  arena.base_ = arena.mapping_ + ((kHugePage - address % kHugePage) % kHugePage);
  arena.size_ = size;
  // Advice only: without huge pages the arena works, with more TLB misses.
  madvise(arena.base_, size, MADV_HUGEPAGE);
  return arena;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
}

Arena::Arena(Arena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)),
      size_(std::exchange(other.size_, 0)),
      used_(std::exchange(other.used_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    std::swap(base_, other.base_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_size_, other.mapping_size_);
    std::swap(size_, other.size_);
    std::swap(used_, other.used_);
  }
  return *this;
}

std::span<std::byte> Arena::Take(size_t bytes) {
  CHECK_LE(bytes, size_ - used_) << "arena of " << size_ << " bytes, " << used_ << " used";
  std::byte* start = base_ + used_;
  used_ = std::min(Align(used_ + bytes), size_);
  return {start, bytes};
}

void Arena::Touch(size_t part, size_t parts) {
  const size_t huge_pages = size_ / kHugePage;
  const size_t end = huge_pages * (part + 1) / parts * kHugePage;
  volatile std::byte* page = base_;
  for (size_t at = huge_pages * part / parts * kHugePage; at < end; at += kPage) {
    page[at] = page[at];
  }
}

}  // namespace quire
