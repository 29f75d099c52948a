#include "server/delivery/delivery.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "server/delivery/stream.h"

// A stream stays in streams_ until it has ended for the client and the engine has sent its last
// event; both bounds are the slots of the inbox. Numbers are published before a sink's flush, so a
// client that sees its call end finds it counted.
namespace quire {
namespace {

constexpr absl::Duration kReaderPoll = absl::Milliseconds(10);   // while a reader is slow
constexpr absl::Duration kBufferPoll = absl::Milliseconds(100);  // while bytes wait in sinks
constexpr absl::Duration kIdle = absl::Seconds(1);

}  // namespace

Delivery::Delivery(DeliveryOptions options, const DeliveryLinks& links)
    : options_(std::move(options)),
      links_(links),
      stats_(options_.initial),
      context_(std::make_unique<StreamContext>()) {
  published_.Store(stats_);
  context_->tokenizer = links_.tokenizer;
  context_->stats = &stats_;
  context_->log = options_.log;
  context_->retry_delay_ms =
      options_.retry_delay_ms ? options_.retry_delay_ms : [] { return int64_t{1000}; };
}

Delivery::~Delivery() { Stop(); }

void Delivery::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Delivery::Stop() {
  stopping_.store(true, std::memory_order_release);
  links_.events->Wake();
  if (thread_.joinable()) thread_.join();
  while (RunOnce()) {
  }
  TakeOpened();
  FailAll();
  streams_.clear();
  stats_.open = stats_.paused = 0;
  stats_.buffered_bytes = 0;
  Publish();
  absl::MutexLock lock(&mutex_);
  ending_ = Ending::kDone;
}

void Delivery::Loop() {
  while (!stopping_.load(std::memory_order_acquire)) {
    RunOnce(stats_.paused > 0 ? kReaderPoll : stats_.buffered_bytes > 0 ? kBufferPoll : kIdle);
  }
}

void Delivery::Open(StreamSpec spec, std::shared_ptr<ResponseSink> sink) {
  auto stream = std::make_unique<Stream>(std::move(spec), std::move(sink), context_.get());
  absl::MutexLock lock(&mutex_);
  opened_.push_back(std::move(stream));
}

bool Delivery::Discard(RequestId id) {
  std::unique_ptr<Stream> dropped;  // its sink may do work when it goes: outside the lock
  absl::MutexLock lock(&mutex_);
  const auto it =
      std::ranges::find_if(opened_, [id](const auto& stream) { return stream->id() == id; });
  if (it == opened_.end()) {  // the thread has it already
    if (ending_ >= Ending::kBegun) return false;
    discarded_.push_back(id);
    links_.events->Wake();
    return true;
  }
  dropped = std::move(*it);
  opened_.erase(it);
  return true;
}

bool Delivery::EndAll(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  if (ending_ == Ending::kNone) ending_ = Ending::kAsked;
  links_.events->Wake();
  const auto done = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ == Ending::kDone; };
  return mutex_.AwaitWithTimeout(absl::Condition(&done), timeout);
}

bool Delivery::TakeOpened() {
  std::vector<std::unique_ptr<Stream>> opened;
  std::vector<RequestId> discarded;
  bool ending = false;
  {
    absl::MutexLock lock(&mutex_);
    opened.swap(opened_);
    discarded.swap(discarded_);
    if (ending_ == Ending::kAsked) ending_ = Ending::kBegun;
    ending = ending_ != Ending::kNone;
  }
  for (std::unique_ptr<Stream>& stream : opened) {
    const RequestId id = stream->id();
    streams_.insert_or_assign(id, std::move(stream));
  }
  for (const RequestId id : discarded) streams_.erase(id);
  return ending;
}

void Delivery::FailAll() {
  const MonotonicTime now = links_.clock->Now();
  for (auto& [id, stream] : streams_) {
    stream->Fail(FinishReason::kShutdown, now);
    flush_due_ = stream->TakeWrote() || flush_due_;
  }
}

bool Delivery::RunOnce(absl::Duration timeout) {
  const bool news = links_.events->Take(batch_, timeout);
  const bool ending = TakeOpened();  // after Take: a stream is opened before its first event exists
  if (news) Apply(batch_);
  if (ending) FailAll();
  CheckReaders();
  Publish();
  if (ending) {
    absl::MutexLock lock(&mutex_);
    ending_ = Ending::kDone;
  }
  return news;
}

void Delivery::Apply(EventBatch& batch) {
  const MonotonicTime now = links_.clock->Now();
  const auto find = [this](RequestId id) -> Stream* {
    const auto it = streams_.find(id);
    return it == streams_.end() ? nullptr : it->second.get();
  };
  for (const RequestPrepared& prepared : batch.prepared) {
    if (Stream* stream = find(prepared.id)) stream->OnPrepared(prepared);
  }
  for (RequestRefused& refused : batch.refused) {
    const RequestId id = refused.id;
    Stream* stream = find(id);
    if (stream == nullptr || stream->ended()) continue;
    stream->OnRefused(std::move(refused), now);
    Settle(*stream);
  }
  for (const SequenceAdmitted& admitted : batch.admitted) {
    if (Stream* stream = find(admitted.sequence.request)) stream->OnAdmitted(admitted);
  }
  for (const TokenEvent& event : batch.tokens) {
    Stream* stream = find(event.sequence.request);
    if (stream == nullptr) continue;
    stream->OnToken(event, batch.at, now);
    Settle(*stream);
  }
}

void Delivery::Settle(Stream& stream) {
  flush_due_ = stream.TakeWrote() || flush_due_;
  if (const FinishReason reason = stream.TakeAbort(); reason != FinishReason::kNone) {
    links_.inbox->Abort(stream.id(), reason);
  }
  for (uint64_t ends = stream.TakeEnds(); ends != 0; ends &= ends - 1) {
    links_.inbox->EndOutput({.request = stream.id(), .output_index = std::countr_zero(ends)});
  }
  if (stream.ended() && stream.compute_ended()) streams_.erase(stream.id());
}

void Delivery::CheckReaders() {
  const MonotonicTime now = links_.clock->Now();
  const int64_t patience_ns = options_.slow_reader_ms * 1'000'000;
  stats_.open = stats_.paused = 0;
  stats_.buffered_bytes = 0;
  for (auto& [id, stream] : streams_) {
    if (stream->ended()) continue;
    const int64_t buffered = stream->sink()->BufferedBytes();
    if (!stream->paused && buffered > options_.stream_buffer_bytes) {
      stream->paused = true;
      stream->last_progress = now;
      ++stats_.pauses;
      links_.inbox->SetPaused(id, true);
    } else if (stream->paused && buffered <= options_.stream_buffer_bytes / 2) {
      stream->paused = false;
      links_.inbox->SetPaused(id, false);
    }
    if (buffered < stream->last_buffered) stream->last_progress = now;
    stream->last_buffered = buffered;
    if (stream->paused && Nanos(now) - Nanos(stream->last_progress) >= patience_ns) {
      stream->Fail(FinishReason::kSlowReader, now);
      slow_.push_back(stream.get());
      continue;
    }
    ++stats_.open;
    if (stream->paused) ++stats_.paused;
    stats_.buffered_bytes += buffered;
  }
  for (Stream* stream : slow_) Settle(*stream);
  slow_.clear();
}

void Delivery::Publish() {
  published_.Store(stats_);
  for (StreamContext::End& end : context_->ends) end.sink->OnEnd(std::move(end.status));
  context_->ends.clear();
  if (std::exchange(flush_due_, false) && options_.flush) options_.flush();
}

}  // namespace quire
