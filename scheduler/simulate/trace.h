// Arrivals of requests: a value that is read from CSV, written back, or generated
// (generate_arrivals.h). Any thread.
//
// The CSV has a header line that names its columns, in any order: time_s, prompt_tokens and
// output_tokens; optionally tenant, priority, prefix and prefix_tokens. Empty lines and lines that
// start with # are skipped. Times do not fall from line to line. Requests of one tenant with the
// same prefix begin with the same prefix_tokens tokens; without that number the whole prompt is
// the prefix's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

struct Arrival {
  int64_t time_ns = 0;
  int32_t prompt_tokens = 1, output_tokens = 1;
  int32_t tenant = 0;  // index into Trace::tenants
  int32_t priority = 0;
  int32_t prefix = -1;  // index into Trace::prefixes; -1 = shares nothing
  int32_t prefix_tokens = 0;
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

struct Trace {
  std::vector<Arrival> arrivals;  // by time
  std::vector<std::string> tenants, prefixes;

  double Seconds() const {
    return arrivals.empty() ? 0 : static_cast<double>(arrivals.back().time_ns) * 1e-9;
  }
};

// INVALID_ARGUMENT with name, line, column, what was found and what was wanted.
absl::StatusOr<Trace> ParseTrace(std::string_view name, std::string_view text);

std::string TraceCsv(const Trace& trace);

}  // namespace quire
