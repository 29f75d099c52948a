#include "server/rpc/generate_sink.h"

#include <grpcpp/server_builder.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

class GenerateSinkTest : public ::testing::Test {
 protected:
  static OutDelta Text(const std::string& text, int32_t output = 0) {
    return {.output_index = output, .text = text, .tokens = {}};
  }
  std::vector<v1::GenerateResponse> TakeAll() {
    std::vector<v1::GenerateResponse> all;
    while (auto message = sink_->Take()) {
      EXPECT_LE(message->ByteSizeLong(), static_cast<size_t>(GenerateSink::kMaxMessageBytes));
      all.push_back(*std::move(message));
      sink_->Written();
    }
    return all;
  }

  grpc::ServerBuilder builder_;
  Poller poller_{builder_.AddCompletionQueue()};  // never started: nothing here waits for it
  std::shared_ptr<GenerateSink> sink_ = std::make_shared<GenerateSink>(poller_);
};

TEST_F(GenerateSinkTest, JoinsTextThatArrivesWhileAWriteIsInFlight) {
  sink_->OnDelta(Text("a"));
  ASSERT_EQ(sink_->Take()->delta().text(), "a");
  sink_->OnDelta(Text("b"));
  sink_->OnDelta(Text("c"));
  sink_->Written();
  EXPECT_EQ(sink_->Take()->delta().text(), "bc");
  EXPECT_FALSE(sink_->Take().has_value());
}

TEST_F(GenerateSinkTest, KeepsOutputsApart) {
  sink_->OnDelta(Text("a", 0));
  sink_->OnDelta(Text("b", 1));
  sink_->OnDelta(Text("c", 1));
  const auto all = TakeAll();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].delta().output_index(), 1u);
  EXPECT_EQ(all[1].delta().text(), "bc");
}

TEST_F(GenerateSinkTest, TellsTheEndOnlyAfterTheLastMessage) {
  sink_->OnDelta(Text("a"));
  OutFinished finished;
  finished.reason = FinishReason::kStop;
  finished.usage = OutUsage{.prompt_tokens = 3};
  sink_->OnFinished(finished);
  sink_->OnEnd(absl::OkStatus());
  EXPECT_FALSE(sink_->end().has_value());
  EXPECT_TRUE(sink_->Take()->has_delta());
  EXPECT_FALSE(sink_->end().has_value());
  const auto last = sink_->Take();
  EXPECT_EQ(last->finished().reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(last->usage().prompt_tokens(), 3u);
  ASSERT_TRUE(sink_->end().has_value());
  EXPECT_TRUE(sink_->end()->ok());
}

TEST_F(GenerateSinkTest, CountsBytesUntilTheyAreWritten) {
  EXPECT_EQ(sink_->BufferedBytes(), 0);
  sink_->OnDelta(Text(std::string(1000, 'x')));
  const int64_t buffered = sink_->BufferedBytes();
  EXPECT_GE(buffered, 1000);
  ASSERT_TRUE(sink_->Take().has_value());
  EXPECT_EQ(sink_->BufferedBytes(), buffered);  // in flight
  sink_->OnDelta(Text("y"));
  sink_->Written();
  EXPECT_LT(sink_->BufferedBytes(), buffered);
  TakeAll();
  EXPECT_EQ(sink_->BufferedBytes(), 0);
}

TEST_F(GenerateSinkTest, CutsLongTextBetweenCodePoints) {
  std::string text = "x";  // so that cuts at powers of two fall inside code points
  while (text.size() < 3'000'000) text += "\u4f60";
  sink_->OnDelta(Text(text));
  const auto all = TakeAll();
  EXPECT_GE(all.size(), 3u);
  std::string joined;
  for (const auto& message : all) {
    joined += message.delta().text();
    EXPECT_NE(static_cast<uint8_t>(message.delta().text()[0]) & 0xc0, 0x80);
  }
  EXPECT_EQ(joined, text);
}

TEST_F(GenerateSinkTest, CutsLongOutputsAtTokensWithTheirText) {
  OutDelta delta;
  for (int i = 0; i < 40'000; ++i) {  // every code point in three tokens
    const char byte = "\xe4\xbd\xa0"[i % 3];
    OutToken token;
    token.id = TokenId{i % 3};
    token.piece = std::string(1, byte);
    for (int k = 0; k < 3; ++k) token.top.push_back({TokenId{k}, "alternative", -1.0f});
    delta.text.push_back(byte);
    delta.tokens.push_back(std::move(token));
  }
  delta.text.resize(39'999);  // whole code points
  delta.tokens.resize(39'999);
  const std::string text = delta.text;
  sink_->OnDelta(std::move(delta));
  const auto all = TakeAll();
  EXPECT_GE(all.size(), 2u);
  std::string joined;
  int tokens = 0;
  for (const auto& message : all) {
    std::string pieces;
    for (const auto& token : message.delta().tokens()) pieces += token.piece();
    EXPECT_EQ(pieces, message.delta().text());
    joined += message.delta().text();
    tokens += message.delta().tokens_size();
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(tokens, 39'999);
}

TEST_F(GenerateSinkTest, KeepsTokensWithoutTextWhenTextWasNotAskedFor) {
  OutDelta delta;
  OutToken token;
  token.piece = std::string(30, 'p');
  delta.tokens.assign(50'000, token);
  sink_->OnDelta(std::move(delta));
  size_t tokens = 0;
  for (const auto& message : TakeAll())
    tokens += static_cast<size_t>(message.delta().tokens_size());
  EXPECT_EQ(tokens, 50'000u);
}

}  // namespace
}  // namespace quire
