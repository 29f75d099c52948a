// The C boundary itself: what the classes above it never send.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "runtime/text/bridge_call.h"
#include "runtime/text/hf_tokenizer.h"
#include "tests/runtime/text/text_fixtures.h"

namespace quire {
namespace {

TEST(Bridge, CatchesPanicsOnEveryThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        BridgeBytes error;
        const QuireBridgeCode code = quire_bridge_panic(error.out());
        EXPECT_EQ(code, QUIRE_BRIDGE_INTERNAL);
        EXPECT_THAT(std::string(error.view()), testing::HasSubstr("lib.rs"));
        EXPECT_THAT(std::string(error.view()), testing::Not(testing::HasSubstr("asked for")));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Bridge, APanicBecomesAnInternalStatusWithoutItsPlace) {
  BridgeBytes error;
  const absl::Status status =
      BridgeStatus(quire_bridge_panic(error.out()), error, "TEMPLATE_FAILED");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("lib.rs")));
  EXPECT_EQ(GetErrorInfo(status).reason, "");
}

TEST(Bridge, RefusesInvalidUtf8) {
  const QuireBridgeSlice piece = ToSlice("a");
  const QuireBridgeVocab vocab = {.pre_tokenizer = ToSlice("gpt-2"),
                                  .pieces = &piece,
                                  .piece_count = 1,
                                  .merges = nullptr,
                                  .merge_count = 0};
  QuireBridgeTokenizer* tokenizer = nullptr;
  BridgeBytes error;
  ASSERT_EQ(quire_bridge_tokenizer_new(&vocab, &tokenizer, error.out()), QUIRE_BRIDGE_OK);
  QuireBridgeIds ids = {};
  BridgeBytes encode_error;
  EXPECT_EQ(quire_bridge_encode(tokenizer, ToSlice("a\xC3"), &ids, encode_error.out()),
            QUIRE_BRIDGE_INVALID);
  EXPECT_THAT(std::string(encode_error.view()), testing::HasSubstr("byte 1"));
  quire_bridge_tokenizer_free(tokenizer);

  QuireBridgeTemplate* chat_template = nullptr;
  BridgeBytes template_error;
  EXPECT_EQ(quire_bridge_template_new(ToSlice("\xFF"), &chat_template, template_error.out()),
            QUIRE_BRIDGE_INVALID);
}

TEST(Bridge, FreesNothingSafely) {
  quire_bridge_tokenizer_free(nullptr);
  quire_bridge_template_free(nullptr);
  quire_bridge_bytes_free({});
  quire_bridge_ids_free({});
}

TEST(Bridge, OneTokenizerServesManyThreads) {
  const auto tokenizer = *MakeTokenizer(SmallVocab());
  const auto wanted = Ids(*tokenizer->Encode("the the ab 12 éé", {}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(Ids(*tokenizer->Encode("the the ab 12 éé", {})), wanted);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace quire
