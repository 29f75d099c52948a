#include "runtime/loader/key_reader.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/absl_view.h"
#include "runtime/loader/byte_cursor.h"

namespace quire {
namespace {

constexpr size_t kMaxProblems = 32;  // listed in one error

}  // namespace

const GgufValue* KeyReader::Find(std::string_view key, GgufType type, bool required) {
  asked_.emplace(key);
  const GgufValue* value = header_->FindKey(key);
  if (value == nullptr) {
    if (required) Problem(key, "missing");
    return nullptr;
  }
  if (value->type != type) {
    Problem(key, absl::StrCat("found type ", View(NameOf(value->type)), ", expected ",
                              View(NameOf(type))));
    return nullptr;
  }
  return value;
}

const GgufValue* KeyReader::FindArray(std::string_view key, GgufType element, uint64_t max_count) {
  const GgufValue* value = Find(key, GgufType::kArray, /*required=*/true);
  if (value == nullptr) return nullptr;
  if (value->element != element) {
    Problem(key, absl::StrCat("found array of ", View(NameOf(value->element)), ", expected ",
                              View(NameOf(element))));
    return nullptr;
  }
  if (value->count > max_count) {
    Problem(key, absl::StrCat("found ", value->count, " elements, expected at most ", max_count));
    return nullptr;
  }
  return value;
}

uint32_t KeyReader::Uint(std::string_view key, UintRange range, std::optional<uint32_t> fallback) {
  const GgufValue* value = Find(key, GgufType::kU32, !fallback);
  if (value == nullptr) return fallback.value_or(range.min);
  const auto number = static_cast<uint32_t>(value->bits);
  if (number >= range.min && number <= range.max) return number;
  Problem(key, absl::StrCat("found ", number, ", expected ", range.min, " to ", range.max));
  return fallback.value_or(range.min);
}

float KeyReader::Float(std::string_view key, FloatRange range, std::optional<float> fallback) {
  const GgufValue* value = Find(key, GgufType::kF32, !fallback);
  if (value == nullptr) return fallback.value_or(range.max);
  const auto number = std::bit_cast<float>(static_cast<uint32_t>(value->bits));
  const bool above = range.open_min ? number > range.min : number >= range.min;  // false for NaN
  if (above && number <= range.max) return number;
  Problem(key, absl::StrCat("found ", number, ", expected ", range.open_min ? "above " : "",
                            range.min, range.open_min ? " and up to " : " to ", range.max));
  return fallback.value_or(range.max);
}

bool KeyReader::Bool(std::string_view key, bool fallback) {
  const GgufValue* value = Find(key, GgufType::kBool, /*required=*/false);
  return value == nullptr ? fallback : value->bits != 0;
}

std::string KeyReader::String(std::string_view key, std::optional<std::string> fallback) {
  const GgufValue* value = Find(key, GgufType::kString, !fallback);
  if (value == nullptr) return std::move(fallback).value_or("");
  ByteCursor in(*file_, value->begin, value->end);
  absl::StatusOr<std::string> text = in.ReadString(kMaxGgufStringBytes);
  if (text.ok()) return *std::move(text);
  Problem(key, std::string(text.status().message()));
  return {};
}

std::vector<std::string> KeyReader::Strings(std::string_view key, uint64_t max_count) {
  const GgufValue* value = FindArray(key, GgufType::kString, max_count);
  if (value == nullptr) return {};
  std::vector<std::string> out;
  out.reserve(value->count);
  ByteCursor in(*file_, value->begin, value->end);
  for (uint64_t i = 0; i < value->count; ++i) {
    absl::StatusOr<std::string> text = in.ReadString(kMaxGgufStringBytes);
    if (!text.ok()) {
      Problem(key, std::string(text.status().message()));
      return {};
    }
    out.push_back(*std::move(text));
  }
  return out;
}

std::vector<int32_t> KeyReader::Ints(std::string_view key, uint64_t max_count) {
  const GgufValue* value = FindArray(key, GgufType::kI32, max_count);
  if (value == nullptr) return {};
  std::vector<int32_t> out(value->count);
  ByteCursor in(*file_, value->begin, value->end);
  for (int32_t& number : out) {
    const absl::StatusOr<int32_t> read = in.Read<int32_t>();
    if (!read.ok()) {
      Problem(key, std::string(read.status().message()));
      return {};
    }
    number = *read;
  }
  return out;
}

void KeyReader::Problem(std::string_view key, std::string_view what) {
  if (key.empty()) {
    problems_.emplace_back(what);
    return;
  }
  const GgufValue* value = header_->FindKey(key);
  problems_.push_back(value == nullptr ? absl::StrCat("key ", View(key), ": ", View(what))
                                       : absl::StrCat("offset ", value->begin, ", key ",
                                                      Printable(key), ": ", View(what)));
}

std::vector<std::string> KeyReader::Unread(std::string_view prefix) const {
  std::vector<std::string> names;
  for (const auto& [key, value] : header_->keys) {
    if (std::string_view(key).starts_with(prefix) && !asked_.contains(key))
      names.push_back(Printable(key));
  }
  return names;
}

absl::Status KeyReader::status() const {
  if (problems_.empty()) return absl::OkStatus();
  const size_t listed = std::min(problems_.size(), kMaxProblems);
  const std::string text =
      absl::StrJoin(problems_.begin(), problems_.begin() + static_cast<ptrdiff_t>(listed), "; ");
  return file_->Error(listed == problems_.size()
                          ? text
                          : absl::StrCat(text, "; and ", problems_.size() - listed, " more"));
}

}  // namespace quire
