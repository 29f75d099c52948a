// What became of each request of a trace, in a simulation or in a real run: latencies and counts by
// tenant, and how many requests met the objective. One thread; the trace outlives it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "scheduler/simulate/latency_histogram.h"
#include "scheduler/simulate/trace.h"
#include "scheduler/token_event.h"

namespace quire {

// A request is good if it completed within all of these. Seconds.
struct LatencyObjective {
  double ttft_s = std::numeric_limits<double>::infinity();
  double itl_s = std::numeric_limits<double>::infinity();  // mean over the request's tokens
  double e2e_s = std::numeric_limits<double>::infinity();
};

struct GroupTotals {
  std::string name;
  // arrived = completed + rejected + expired, once all have ended.
  int64_t arrived = 0, completed = 0;
  int64_t rejected = 0;  // at once: it can never fit, or the queue was full
  int64_t expired = 0;   // ended before its last token, such as by age in the queue
  int64_t good = 0;      // completed within the objective
  // Of requests with a first token; drawn.
  int64_t prompt_tokens = 0, output_tokens = 0;
  LatencyHistogram ttft, itl, e2e;

  void Add(const GroupTotals& other);
};

class RequestBook {
 public:
  RequestBook(const Trace& trace, const LatencyObjective& objective);

  void Arrived(RequestId id);
  void Rejected(RequestId id);
  // `at`: time since the start of the trace.
  void Record(const TokenEvent& event, MonotonicTime at);

  int64_t open() const { return open_; }  // arrived, not ended
  // Of all requests, then of each tenant in the order of the trace.
  std::vector<GroupTotals> Totals() const;

 private:
  struct Entry {
    int64_t first_ns = -1, last_ns = -1;
    int32_t tokens = 0;
  };
  void Finished(const TokenEvent& event, const Arrival& arrival, const Entry& entry);

  const Trace& trace_;
  const LatencyObjective objective_;
  std::vector<Entry> entries_;       // [arrivals]
  std::vector<GroupTotals> groups_;  // [tenants]
  int64_t open_ = 0;
};

}  // namespace quire
