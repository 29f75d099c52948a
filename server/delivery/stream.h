// One request on its way to its client: the state of each output, when things happened, how it
// ends. Owned and used by the delivery thread only. Every path ends in exactly one
// ResponseSink::OnEnd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/clock.h"
#include "runtime/text/tokenizer.h"
#include "server/delivery/delivery.h"
#include "server/delivery/output_text.h"
#include "server/delivery/response_sink.h"
#include "server/delivery/stream_stats.h"
#include "server/engine/step_events.h"

namespace quire {

// What a Stream needs of the delivery; outlives it.
struct StreamContext {
  const Tokenizer* tokenizer = nullptr;
  StreamStats* stats = nullptr;
  std::function<int64_t()> retry_delay_ms;
  RequestLogger log{};
  // Ends that wait until the numbers are out, so that a client that sees its call over finds it
  // counted.
  struct End {
    std::shared_ptr<ResponseSink> sink;
    absl::Status status;
  };
  std::vector<End> ends;
};

class Stream {
 public:
  Stream(StreamSpec spec, std::shared_ptr<ResponseSink> sink, StreamContext* context);

  RequestId id() const { return spec_.id; }
  ResponseSink* sink() const { return sink_.get(); }  // null once ended

  void OnPrepared(const RequestPrepared& prepared);
  void OnRefused(RequestRefused refused, MonotonicTime now);
  void OnAdmitted(const SequenceAdmitted& admitted);
  void OnToken(const TokenEvent& event, MonotonicTime at, MonotonicTime now);
  // Ends it from this side (slow reader, shutdown); no more tokens reach the client.
  void Fail(FinishReason reason, MonotonicTime now);

  bool ended() const { return sink_ == nullptr; }
  // Every sequence has had its last event: nothing more will come.
  bool compute_ended() const { return open_sequences_ == 0; }
  // It ended while sequences still compute: what to abort them with. kNone afterwards.
  FinishReason TakeAbort();
  // Outputs whose text has ended while they still compute and others go on: bit i, output i.
  uint64_t TakeEnds();
  bool TakeWrote();  // something was handed to the sink since the last call

  // Slow readers; kept by Delivery.
  bool paused = false;
  int64_t last_buffered = 0;
  MonotonicTime last_progress{};

 private:
  struct Output {
    explicit Output(const std::vector<std::string>& stop_strings) : text(stop_strings) {}
    OutputText text;
    bool finished = false;       // towards the client
    bool compute_ended = false;  // its last event has come
    int64_t tokens = 0;          // drawn, all kinds
    MonotonicTime admitted{}, first_token{}, last_token{};
    int32_t preemptions = 0;
  };

  void CountToken(Output& output, MonotonicTime at, MonotonicTime now);
  OutToken MakeToken(const TokenEvent& event) const;
  void SendReady(int32_t index, bool last);
  void FinishOutput(int32_t index, OutFinished finished, MonotonicTime now);
  void EndByEvent(int32_t index, const TokenEvent& event, MonotonicTime now);
  void FailWith(absl::Status status, FinishReason reason, MonotonicTime now);
  void End(absl::Status status, FinishReason reason, MonotonicTime now);
  OutTiming TimingOf(const Output& output, MonotonicTime now) const;
  OutUsage UsageNow() const;
  void Log(const absl::Status& status, FinishReason reason, MonotonicTime now) const;
  std::string_view Stage() const;
  int64_t generated_tokens() const;

  const StreamSpec spec_;
  std::shared_ptr<ResponseSink> sink_;
  StreamContext* context_;
  std::vector<Output> outputs_;
  int32_t open_outputs_;    // not finished towards the client
  int32_t open_sequences_;  // whose last event has not come
  bool accepted_ = true;    // false: refused before the scheduler took it
  bool wrote_ = false;
  FinishReason abort_ = FinishReason::kNone;
  uint64_t ends_ = 0;
  int32_t prompt_tokens_ = 0, cached_prompt_tokens_ = 0;
  LengthBound length_bound_ = LengthBound::kNone;
  MonotonicTime prepared_{}, first_token_{};
  bool stopped_by_text_ = false;  // why later tokens are discarded
};

}  // namespace quire
