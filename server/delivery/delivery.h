// Turns token events into text for clients: one thread, one Stream per request. It alone ends a
// request: every opened stream gets exactly one ResponseSink::OnEnd, unless it is discarded before
// it was submitted. Open and Discard: any thread. A slow client costs bounded bytes; delivery never
// waits for one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/seqlock.h"
#include "runtime/text/tokenizer.h"
#include "server/delivery/request_record.h"
#include "server/delivery/response_sink.h"
#include "server/delivery/stream_stats.h"
#include "server/engine/inbox.h"
#include "server/engine/step_events.h"

namespace quire {

// How one request wants its output; copied out of the ValidRequest before it is submitted.
struct StreamSpec {
  RequestId id = RequestId::kNone;
  std::string name{}, tenant{};  // for the log
  int32_t num_sequences = 1;
  uint64_t seed = 0;
  bool final_only = false;  // text held until each output ends
  int32_t tokens_per_message = 1;
  bool text = true, tokens = false;
  bool logprobs = false;  // logprob, rank and alternatives of listed tokens
  std::vector<std::string> stop_strings{};
  std::vector<TokenId> stop_token_ids{};
  bool keep_stop = false;
  int32_t min_tokens = 0;
  MonotonicTime arrival{};
};

struct DeliveryOptions {
  int64_t stream_buffer_bytes = 256 << 10;  // over it the request is paused; resumes at half
  int64_t slow_reader_ms = 30'000;          // paused without progress for this long: ended
  std::function<void()> flush{};  // called on the delivery thread after each batch with output
  std::function<int64_t()> retry_delay_ms{};  // for retriable ends; unset: 1000
  RequestLogger log{};                        // optional
  StreamStats initial{};  // zeros, with the bounds that the histograms are to have
};

// All outlive the delivery.
struct DeliveryLinks {
  const Tokenizer* tokenizer = nullptr;
  Inbox* inbox = nullptr;
  StepEvents* events = nullptr;
  const Clock* clock = nullptr;
};

class Stream;  // stream.h
struct StreamContext;

class Delivery {
 public:
  Delivery(DeliveryOptions options, const DeliveryLinks& links);
  ~Delivery();  // Stop

  void Start();
  // Delivers what the queue holds, then ends every stream that is left with UNAVAILABLE SHUTDOWN.
  void Stop();

  // Before Intake::Submit of the same id.
  void Open(StreamSpec spec, std::shared_ptr<ResponseSink> sink);
  // After Submit failed: forgets the stream; no call reaches its sink. False: EndAll came first.
  bool Discard(RequestId id);

  // Ends every stream at once with UNAVAILABLE SHUTDOWN, also those that are opened later, for an
  // exit that waits for nobody. False: not done within `timeout`. Any thread.
  bool EndAll(absl::Duration timeout);

  StreamStats Stats() const { return published_.Load(); }
  // One batch on the calling thread, for tests and tools without the thread. False: nothing came in
  // time.
  bool RunOnce(absl::Duration timeout = absl::ZeroDuration());

 private:
  void Loop();
  bool TakeOpened();  // true: EndAll was called
  void FailAll();
  void Apply(EventBatch& batch);
  void Settle(Stream& stream);  // after a change: aborts compute, forgets what has ended
  void CheckReaders();
  void Publish();  // numbers, then ends, then the flush

  const DeliveryOptions options_;
  const DeliveryLinks links_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Stream>> opened_ ABSL_GUARDED_BY(mutex_);
  std::vector<RequestId> discarded_ ABSL_GUARDED_BY(mutex_);
  enum class Ending : uint8_t { kNone, kAsked, kBegun, kDone };
  Ending ending_ ABSL_GUARDED_BY(mutex_) = Ending::kNone;
  // Delivery thread only, from here on.
  absl::flat_hash_map<RequestId, std::unique_ptr<Stream>> streams_;
  EventBatch batch_;
  std::vector<Stream*> slow_;  // found by CheckReaders
  StreamStats stats_;
  bool flush_due_ = false;
  const std::unique_ptr<StreamContext> context_;
  Seqlock<StreamStats> published_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace quire
