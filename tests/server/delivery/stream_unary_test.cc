// One request's tokens, delivered in every mode: text, tokens, usage and end are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/text/utf8.h"
#include "tests/server/delivery/delivery_fixture.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

struct Story {
  std::vector<int32_t> tokens;  // the last one comes with the end
  FinishReason end = FinishReason::kLength;
  std::vector<std::string> stops;
  int32_t min_tokens = 0;
  bool keep_stop = false;
};

struct Told {
  std::string text, end;
  std::vector<std::pair<int32_t, int32_t>> tokens;  // id, visible bytes
  OutFinished finished;
  size_t deltas = 0;
};

const std::vector<std::string> kPieces = {"\xF0\x9F", "\x98\x80", "ab",    "</",
                                          "s>",       "\xC3",     "\xA9 x"};

Told Tell(const Story& story, StreamSpec spec) {
  DeliveryFixture f({}, kPieces);
  spec.stop_strings = story.stops;
  spec.min_tokens = story.min_tokens;
  spec.keep_stop = story.keep_stop;
  spec.stop_token_ids = {TokenId{'.'}};
  spec.seed = 3;
  const auto sink = f.Open(1, spec);
  f.Prepare(1, 4, LengthBound::kRequest);
  f.Admit(1);
  for (size_t i = 0; i < story.tokens.size(); ++i) {
    const bool last = i + 1 == story.tokens.size();
    f.Step({DeliveryFixture::Event(1, story.tokens[i], last ? story.end : FinishReason::kNone)});
    if (i % 3 == 0) f.Pump();  // batches pile up in between
  }
  f.Pump();
  Told told{.text = sink->Text(),
            .end = sink->ends().size() == 1 ? sink->ends()[0].ToString() : "not one end",
            .tokens = {},
            .finished = {},
            .deltas = sink->deltas().size()};
  for (const OutToken& token : sink->Tokens()) {
    told.tokens.emplace_back(
        static_cast<int32_t>(token.id),
        token.visible_bytes.value_or(static_cast<int32_t>(token.piece.size())));
  }
  if (sink->finished().size() == 1) told.finished = sink->finished()[0];
  return told;
}

Story RandomStory(TestRandom& random) {
  Story story;
  for (int32_t n = random.Between(1, 25); n > 0; --n) {
    story.tokens.push_back(
        random.Chance(60) ? FakeTokenizer::kFirstPiece +
                                random.Between(0, static_cast<int32_t>(kPieces.size()) - 1)
        : random.Chance(80) ? random.Between('a', 'c')
                            : random.Between(128, 258));  // stray bytes, control tokens
  }
  if (random.Chance(40)) {
    story.end = FinishReason::kStop;
    story.tokens.back() = random.Chance(50) ? '.' : static_cast<int32_t>(FakeTokenizer::kEos);
  } else if (random.Chance(30)) {
    story.end = random.Chance(50) ? FinishReason::kTimeLimit : FinishReason::kAborted;
    story.tokens.push_back(-1);  // ends without a token
  }
  for (int32_t n = random.Between(0, 3); n > 0; --n) {
    static const std::vector<std::string> kStops = {"</s>",
                                                    "abab",
                                                    "\xF0\x9F\x98\x80"
                                                    "ab",
                                                    "\xC3\xA9",
                                                    "ca",
                                                    "s>"};
    story.stops.push_back(kStops[static_cast<size_t>(random.Between(0, 5))]);
  }
  if (random.Chance(30)) story.min_tokens = random.Between(1, 10);
  story.keep_stop = random.Chance(30);
  return story;
}

TEST(StreamUnary, EveryModeTellsTheSame) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const Story story = RandomStory(random);
    const Told unary = Tell(story, {.final_only = true, .text = true, .tokens = true});
    ASSERT_EQ(unary.end, "OK");
    ASSERT_TRUE(IsValidUtf8(unary.text));
    ASSERT_TRUE(unary.finished.usage.has_value());
    for (const int32_t least : {1, 2, 5}) {
      const Told stream = Tell(story, {.tokens_per_message = least, .text = true, .tokens = true});
      ASSERT_EQ(stream.text, unary.text);
      ASSERT_EQ(stream.tokens, unary.tokens);
      ASSERT_EQ(stream.end, unary.end);
      ASSERT_EQ(stream.finished.reason, unary.finished.reason);
      ASSERT_EQ(stream.finished.matched, unary.finished.matched);
      ASSERT_EQ(stream.finished.matched_value, unary.finished.matched_value);
      ASSERT_EQ(stream.finished.length_bound, unary.finished.length_bound);
      ASSERT_EQ(stream.finished.usage->completion_tokens, unary.finished.usage->completion_tokens);
      ASSERT_EQ(stream.finished.usage->stop_tokens, unary.finished.usage->stop_tokens);
      ASSERT_EQ(stream.finished.usage->completion_tokens,
                static_cast<int32_t>(stream.tokens.size()));
    }
    ASSERT_EQ(Tell(story, {}).text, unary.text) << "text alone";
    const Told bare = Tell(story, {.text = false, .tokens = true});
    ASSERT_EQ(bare.text, "");
    ASSERT_EQ(bare.tokens, unary.tokens);
  }
}

}  // namespace
}  // namespace quire
