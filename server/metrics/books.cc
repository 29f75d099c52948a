#include "server/metrics/books.h"

#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

absl::Status Broken(const char* what, uint64_t left, uint64_t right) {
  return absl::InternalError(absl::StrCat(what, ": ", left, " against ", right));
}

absl::Status Equal(const char* what, uint64_t left, uint64_t right) {
  return left == right ? absl::OkStatus() : Broken(what, left, right);
}

absl::Status AtMost(const char* what, uint64_t left, uint64_t right) {
  return left <= right ? absl::OkStatus() : Broken(what, left, right);
}

template <typename Counts>
uint64_t Sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

}  // namespace

uint64_t FinishedRequests(const StreamStats& streams) { return Sum(streams.finished); }

absl::Status CheckBooks(const Books& books) {
  const StreamStats& d = books.streams;
  const StepStats& e = books.steps;
  const uint64_t finished = FinishedRequests(d);
  const auto computed = e.prefill_tokens + e.recompute_tokens + e.decode_tokens;
  const auto sequences = static_cast<uint64_t>(e.running + e.waiting) + Sum(e.sequences_finished);
  for (const absl::Status& status : {
           AtMost("accepted and rejected, received", e.accepted + SumOf(books.intake.rejected),
                  books.intake.received),
           AtMost("finished, accepted requests", finished, e.accepted),
           Equal("sequences started", e.sequences_started, sequences),
           Equal("blocks free, cached and used",
                 static_cast<uint64_t>(e.blocks_free + e.blocks_cached + e.blocks_used),
                 static_cast<uint64_t>(e.blocks_total)),
           Equal("computed tokens", computed, static_cast<uint64_t>(e.step_tokens.sum)),
           AtMost("found in the prefix cache, looked up", e.prefix_hit_tokens,
                  e.prefix_query_tokens),
           AtMost("cached prompt tokens, found", d.cached_prompt_tokens, e.prefix_hit_tokens),
           AtMost("cached, all prompt tokens", d.cached_prompt_tokens, d.prompt_tokens),
           Equal("gaps between tokens", d.inter_token.count,
                 d.generation_tokens - d.sequences_with_token),
           Equal("first tokens", d.time_to_first_token.count, d.requests_with_token),
           Equal("durations", d.request.count, finished),
       }) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace quire
