#include "scheduler/simulate/request_book.h"

#include "absl/log/check.h"
#include "scheduler/simulate/trace_request.h"

namespace quire {

void GroupTotals::Add(const GroupTotals& other) {
  arrived += other.arrived;
  completed += other.completed;
  rejected += other.rejected;
  expired += other.expired;
  good += other.good;
  prompt_tokens += other.prompt_tokens;
  output_tokens += other.output_tokens;
  ttft.Add(other.ttft);
  itl.Add(other.itl);
  e2e.Add(other.e2e);
}

RequestBook::RequestBook(const Trace& trace, const LatencyObjective& objective)
    : trace_(trace),
      objective_(objective),
      entries_(trace.arrivals.size()),
      groups_(trace.tenants.size()) {
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].name = trace.tenants[i];
}

void RequestBook::Arrived(RequestId id) {
  ++groups_[static_cast<size_t>(trace_.arrivals[ArrivalOf(id)].tenant)].arrived;
  ++open_;
}

void RequestBook::Rejected(RequestId id) {
  ++groups_[static_cast<size_t>(trace_.arrivals[ArrivalOf(id)].tenant)].rejected;
  --open_;
}

void RequestBook::Record(const TokenEvent& event, MonotonicTime at) {
  const size_t index = ArrivalOf(event.sequence.request);
  const Arrival& arrival = trace_.arrivals[index];
  Entry& entry = entries_[index];
  GroupTotals& group = groups_[static_cast<size_t>(arrival.tenant)];
  if (event.token != TokenId::kNone) {
    const int64_t now = Nanos(at);
    if (entry.tokens == 0) {
      entry.first_ns = now;
      group.prompt_tokens += arrival.prompt_tokens;
      group.ttft.Observe(now - arrival.time_ns);
    } else {
      group.itl.Observe(now - entry.last_ns);
    }
    entry.last_ns = now;
    ++entry.tokens;
    ++group.output_tokens;
  }
  if (event.finish != FinishReason::kNone) Finished(event, arrival, entry);
}

void RequestBook::Finished(const TokenEvent& event, const Arrival& arrival, const Entry& entry) {
  GroupTotals& group = groups_[static_cast<size_t>(arrival.tenant)];
  CHECK_GT(open_, 0);
  --open_;
  if (event.finish != FinishReason::kLength && event.finish != FinishReason::kStop) {
    ++group.expired;
    return;
  }
  ++group.completed;
  const auto seconds = [](int64_t nanos) { return static_cast<double>(nanos) * 1e-9; };
  group.e2e.Observe(entry.last_ns - arrival.time_ns);
  const double itl =
      entry.tokens > 1 ? seconds(entry.last_ns - entry.first_ns) / (entry.tokens - 1) : 0;
  group.good += seconds(entry.first_ns - arrival.time_ns) <= objective_.ttft_s &&
                itl <= objective_.itl_s &&
                seconds(entry.last_ns - arrival.time_ns) <= objective_.e2e_s;
}

std::vector<GroupTotals> RequestBook::Totals() const {
  std::vector<GroupTotals> all(1);
  all[0].name = "all";
  for (const GroupTotals& group : groups_) {
    all[0].Add(group);
    all.push_back(group);
  }
  return all;
}

}  // namespace quire
