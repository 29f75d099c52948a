// A delivery without its thread: events are put in by hand, as the intake and the engine would.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error_info.h"
#include "server/delivery/delivery.h"
#include "tests/testing/fake_sink.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/manual_clock.h"

namespace quire {

class DeliveryFixture {
 public:
  explicit DeliveryFixture(DeliveryOptions options = {}, std::vector<std::string> pieces = {})
      : tokenizer(std::move(pieces)),
        inbox(16),
        delivery(WithFlush(std::move(options)), {&tokenizer, &inbox, &events, &clock}) {}

  // Opens and reserves; the request is with the intake.
  std::shared_ptr<FakeSink> Open(uint64_t id, StreamSpec spec = {}) {
    auto sink = std::make_shared<FakeSink>();
    spec.id = RequestId{id};
    spec.arrival = clock.Now();
    delivery.Open(std::move(spec), sink);
    EXPECT_EQ(inbox.Reserve(RequestId{id}), Room::kTaken);
    return sink;
  }
  // As the intake does when it is done with a request, and the engine when it takes it.
  void Prepare(uint64_t id, int32_t prompt_tokens = 5, LengthBound bound = LengthBound::kRequest) {
    events.Prepare({RequestId{id}, prompt_tokens, bound, clock.Now()});
    Request request;
    request.id = RequestId{id};
    inbox.Submit(std::move(request));
    InboxMessages messages;
    inbox.Drain(messages);
  }
  void Admit(uint64_t id) {
    EventBatch batch;
    batch.at = clock.Now();
    batch.admitted.push_back({{RequestId{id}, 0}, clock.Now()});
    events.Publish(batch);
  }
  static TokenEvent Event(uint64_t id, int32_t token, FinishReason finish = FinishReason::kNone) {
    TokenEvent event{};
    event.sequence = {RequestId{id}, 0};
    event.token = TokenId{token};
    event.finish = finish;
    return event;
  }
  void Step(std::vector<TokenEvent> tokens) {
    EventBatch batch;
    batch.at = clock.Now();
    batch.tokens = std::move(tokens);
    events.Publish(batch);
  }
  // One step per byte of text.
  void Say(uint64_t id, std::string_view text) {
    for (const char c : text) Step({Event(id, static_cast<unsigned char>(c))});
    Pump();
  }
  void Finish(uint64_t id, FinishReason reason, int32_t token = -1) {
    inbox.Finished(std::vector<RequestId>{RequestId{id}});
    Step({Event(id, token, reason)});
    Pump();
  }
  void Pump() {
    while (delivery.RunOnce()) {
    }
    delivery.RunOnce();
  }
  std::vector<std::pair<RequestId, FinishReason>> Aborts() {
    InboxMessages messages;
    inbox.Drain(messages);
    return messages.aborts;
  }

  FakeTokenizer tokenizer;
  ManualClock clock;
  StepEvents events;
  Inbox inbox;
  int flushes = 0;
  Delivery delivery;

 private:
  DeliveryOptions WithFlush(DeliveryOptions options) {
    options.flush = [this] { ++flushes; };
    return options;
  }
};

}  // namespace quire
