// Typed reads of a GGUF file's keys. Collects what is missing, of another type or out of range, so
// that one error can list all of it; a getter that fails returns its fallback or an empty value.
// One thread; file and header outlive the reader.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/loader/gguf.h"
#include "runtime/loader/model_file.h"

namespace quire {

struct UintRange {
  uint32_t min = 0, max = std::numeric_limits<uint32_t>::max();
};
struct FloatRange {
  float min, max;         // both allowed, unless
  bool open_min = false;  // values must be greater than min
};

class KeyReader {
 public:
  KeyReader(const ModelFile& file, const GgufHeader& header) : file_(&file), header_(&header) {}

  bool Has(std::string_view key) const { return header_->FindKey(key) != nullptr; }

  // Without a fallback the key is required.
  uint32_t Uint(std::string_view key, UintRange range, std::optional<uint32_t> fallback = {});
  float Float(std::string_view key, FloatRange range, std::optional<float> fallback = {});
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key, std::optional<std::string> fallback = {});
  // Arrays; `max_count` elements at most.
  std::vector<std::string> Strings(std::string_view key, uint64_t max_count);
  std::vector<int32_t> Ints(std::string_view key, uint64_t max_count);

  // Notes a problem with a key, or with the file as a whole if `key` is empty.
  void Problem(std::string_view key, std::string_view what);
  // Keys that start with `prefix` and were never asked for.
  std::vector<std::string> Unread(std::string_view prefix) const;

  // INVALID_ARGUMENT that lists every problem, or OK.
  absl::Status status() const;

 private:
  // The value if it has this type; else notes why not (a missing key only if required).
  const GgufValue* Find(std::string_view key, GgufType type, bool required);
  const GgufValue* FindArray(std::string_view key, GgufType element, uint64_t max_count);

  const ModelFile* file_;
  const GgufHeader* header_;
  std::set<std::string, std::less<>> asked_;
  std::vector<std::string> problems_;
};

}  // namespace quire
