// What became of one request, for its line in the log: numbers and names, never text. Plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/delivery/response_sink.h"

namespace quire {

struct RequestRecord {
  std::string request_id, tenant;  // as the client knows them; a client's id may be empty
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string reason{};  // of the error, or why the last output ended: "stop", "length"
  int32_t outputs = 1;
  OutUsage usage{};         // completion_tokens: drawn, whether or not they were sent
  OutTiming timing{};       // of the first output; preemptions of all
  int64_t duration_us = 0;  // arrival to end
};

// Called once per request at its end, by the delivery or by the call that was refused. Must not
// block. Any thread.
using RequestLogger = std::function<void(const RequestRecord&)>;

}  // namespace quire
