#include "runtime/loader/byte_cursor.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kWindowBytes = 256 << 10;

}  // namespace

ByteCursor::ByteCursor(const ModelFile& file, uint64_t begin, uint64_t end)
    : file_(&file),
      offset_(std::min(begin, file.size())),
      end_(std::clamp(end, offset_, file.size())) {}

absl::StatusOr<bool> ByteCursor::ReadBool() {
  const uint64_t at = offset_;
  ASSIGN_OR_RETURN(const uint8_t value, Read<uint8_t>());
  if (value > 1) return ErrorAt(at, absl::StrCat("found bool byte ", value, ", expected 0 or 1"));
  return value == 1;
}

absl::StatusOr<uint64_t> ByteCursor::ReadLength(uint64_t max_bytes) {
  const uint64_t at = offset_;
  ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>());
  if (length > remaining()) {
    return ErrorAt(at, absl::StrCat("truncated at ", file_->size(), ": found string length ",
                                    length, ", ", remaining(), " bytes remain"));
  }
  if (length > max_bytes) {
    return ErrorAt(at,
                   absl::StrCat("found string length ", length, ", expected at most ", max_bytes));
  }
  return length;
}

absl::StatusOr<std::string> ByteCursor::ReadString(uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const uint64_t length, ReadLength(max_bytes));
  std::string value(length, '\0');
  RETURN_IF_ERROR(Copy(std::as_writable_bytes(std::span(value))));
  return value;
}

absl::Status ByteCursor::SkipString(uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const uint64_t length, ReadLength(max_bytes));
  return Skip(length);
}

absl::Status ByteCursor::Skip(uint64_t bytes) {
  RETURN_IF_ERROR(CheckRemaining(bytes));
  offset_ += bytes;
  return absl::OkStatus();
}

absl::Status ByteCursor::CheckRemaining(uint64_t bytes) const {
  if (bytes <= remaining()) return absl::OkStatus();
  return Error(absl::StrCat("truncated at ", file_->size(), ": ", bytes, " bytes expected, ",
                            remaining(), " remain"));
}

absl::Status ByteCursor::Copy(std::span<std::byte> out) {
  RETURN_IF_ERROR(CheckRemaining(out.size()));
  while (!out.empty()) {
    if (offset_ < window_begin_ || offset_ >= window_begin_ + window_.size()) {
      std::vector<std::byte> window(std::min(kWindowBytes, remaining()));
      RETURN_IF_ERROR(file_->ReadAt(offset_, window));
      window_ = std::move(window);
      window_begin_ = offset_;
    }
    const size_t from = offset_ - window_begin_;
    const size_t count = std::min(out.size(), window_.size() - from);
    std::memcpy(out.data(), window_.data() + from, count);
    out = out.subspan(count);
    offset_ += count;
  }
  return absl::OkStatus();
}

absl::Status ByteCursor::ErrorAt(uint64_t offset, std::string_view what) const {
  return file_->Error(
      absl::StrCat("offset ", offset, context_.empty() ? "" : ", ", context_, ": ", View(what)));
}

}  // namespace quire
