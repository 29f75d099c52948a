#include "scheduler/simulate/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/log/check.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/status_macros.h"
#include "scheduler/simulate/text_parse.h"

namespace quire {
namespace {

constexpr std::array<const char*, 7> kColumns = {
    "time_s", "prompt_tokens", "output_tokens", "tenant", "priority", "prefix", "prefix_tokens"};
enum Column : size_t {
  kTime,
  kPromptTokens,
  kOutputTokens,
  kTenant,
  kPriority,
  kPrefix,
  kPrefixTokens
};
constexpr size_t kRequired = 3;  // of kColumns, from the first
constexpr double kMaxSeconds = 1e7;
constexpr int64_t kMaxTokens = 1 << 20;
constexpr size_t kMaxArrivals = 10'000'000, kMaxTenants = 256, kMaxNames = 1'000'000;

// A number for each name, in order of first use.
class NameTable {
 public:
  // Nothing if the table is full.
  std::optional<int32_t> IndexOf(std::string_view name, size_t most) {
    const auto [it, added] =
        index_.try_emplace(std::string(name), static_cast<int32_t>(names_.size()));
    if (!added) return it->second;
    if (names_.size() == most) return std::nullopt;
    names_.emplace_back(name);
    return it->second;
  }
  std::vector<std::string> TakeNames() { return std::move(names_); }

 private:
  std::map<std::string, int32_t, std::less<>> index_;
  std::vector<std::string> names_;
};

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  });
}

class Parser {
 public:
  explicit Parser(std::string_view name) : name_(name) { column_of_.fill(-1); }

  absl::Status Line(std::string_view line) {
    ++line_;
    line = StripSpace(line);
    if (line.empty() || line.front() == '#') return absl::OkStatus();
    SplitFields(line, ',', &fields_);
    return has_header_ ? Row() : Header();
  }

  absl::StatusOr<Trace> Finish() {
    if (!has_header_) return Bad("no header line; wanted ", absl::StrJoin(kColumns, ","));
    if (trace_.arrivals.empty()) return Bad("no request");
    trace_.tenants = tenants_.TakeNames();
    trace_.prefixes = prefixes_.TakeNames();
    return std::move(trace_);
  }

 private:
  template <typename... Parts>
  absl::Status Bad(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(View(name_), ":", line_, ": ", parts...));
  }
  absl::Status BadField(Column column, std::string_view wanted) const {
    return Bad(kColumns[column], ": got '", absl::CHexEscape(View(Field(column).substr(0, 64))),
               "', wanted ", View(wanted));
  }
  std::string_view Field(Column column) const {
    const int32_t at = column_of_[column];
    return at < 0 ? std::string_view() : fields_[static_cast<size_t>(at)];
  }

  absl::Status Header() {
    has_header_ = true;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const auto it = std::ranges::find(kColumns, fields_[i]);
      if (it == kColumns.end()) {
        return Bad("unknown column '", absl::CHexEscape(View(fields_[i].substr(0, 64))),
                   "'; known are ", absl::StrJoin(kColumns, ","));
      }
      int32_t& column = column_of_[static_cast<size_t>(it - kColumns.begin())];
      if (column >= 0) return Bad("column '", View(fields_[i]), "' is named twice");
      column = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < kRequired; ++i) {
      if (column_of_[i] < 0) return Bad("column '", kColumns[i], "' is missing");
    }
    columns_ = fields_.size();
    return absl::OkStatus();
  }

  absl::Status Integer(Column column, std::pair<int64_t, int64_t> range, int32_t* out) const {
    int64_t value = 0;
    if (!ParseNumber(Field(column), &value) || value < range.first || value > range.second) {
      return BadField(column, absl::StrCat("an integer ", range.first, "..", range.second));
    }
    *out = static_cast<int32_t>(value);
    return absl::OkStatus();
  }

  absl::Status Name(Column column, NameTable& table, size_t most, int32_t* out) const {
    if (!IsName(Field(column))) return BadField(column, "1..64 characters of a-z 0-9 _ -");
    const std::optional<int32_t> index = table.IndexOf(Field(column), most);
    if (!index.has_value())
      return Bad("more than ", most, " different names in ", kColumns[column]);
    *out = *index;
    return absl::OkStatus();
  }

  absl::Status Row() {
    if (fields_.size() != columns_) {
      return Bad("got ", fields_.size(), " fields, wanted ", columns_);
    }
    if (trace_.arrivals.size() == kMaxArrivals) return Bad("more than ", kMaxArrivals, " requests");
    Arrival arrival;
    double seconds = 0;
    if (!ParseNumber(Field(kTime), &seconds) || !(seconds >= 0 && seconds <= kMaxSeconds)) {
      return BadField(kTime, absl::StrCat("seconds 0..", kMaxSeconds));
    }
    arrival.time_ns = std::llround(seconds * 1e9);
    if (!trace_.arrivals.empty() && arrival.time_ns < trace_.arrivals.back().time_ns) {
      return Bad("time_s: got ", View(Field(kTime)), ", before the line above");
    }
    RETURN_IF_ERROR(Integer(kPromptTokens, {1, kMaxTokens}, &arrival.prompt_tokens));
    RETURN_IF_ERROR(Integer(kOutputTokens, {1, kMaxTokens}, &arrival.output_tokens));
    if (Field(kPriority) != "") {
      RETURN_IF_ERROR(Integer(kPriority, {-10, 10}, &arrival.priority));
    }
    if (Field(kTenant) != "") {
      RETURN_IF_ERROR(Name(kTenant, tenants_, kMaxTenants, &arrival.tenant));
    } else {
      const std::optional<int32_t> index = tenants_.IndexOf("default", kMaxTenants + 1);
      CHECK(index.has_value());  // it has a place beside the named ones
      arrival.tenant = *index;
    }
    if (Field(kPrefix) != "") {
      RETURN_IF_ERROR(Name(kPrefix, prefixes_, kMaxNames, &arrival.prefix));
      arrival.prefix_tokens = arrival.prompt_tokens;
    }
    if (Field(kPrefixTokens) != "") {
      if (arrival.prefix < 0 && Field(kPrefixTokens) != "0") {
        return BadField(kPrefixTokens, "nothing, since the line has no prefix");
      }
      RETURN_IF_ERROR(Integer(kPrefixTokens, {0, arrival.prompt_tokens}, &arrival.prefix_tokens));
    }
    trace_.arrivals.push_back(arrival);
    return absl::OkStatus();
  }

  const std::string_view name_;
  int64_t line_ = 0;
  bool has_header_ = false;
  std::array<int32_t, kColumns.size()> column_of_;
  size_t columns_ = 0;
  std::vector<std::string_view> fields_;
  NameTable tenants_, prefixes_;
  Trace trace_;
};

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view name, std::string_view text) {
  Parser parser(name);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    RETURN_IF_ERROR(parser.Line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Finish();
}

std::string TraceCsv(const Trace& trace) {
  std::string csv = absl::StrCat(absl::StrJoin(kColumns, ","), "\n");
  for (const Arrival& a : trace.arrivals) {
    const bool shares = a.prefix >= 0;
    absl::StrAppendFormat(&csv, "%.6f,%d,%d,%s,%d,%s,%s\n", static_cast<double>(a.time_ns) * 1e-9,
                          a.prompt_tokens, a.output_tokens,
                          trace.tenants[static_cast<size_t>(a.tenant)], a.priority,
                          shares ? trace.prefixes[static_cast<size_t>(a.prefix)] : "",
                          shares ? absl::StrCat(a.prefix_tokens) : "");
  }
  return csv;
}

}  // namespace quire
