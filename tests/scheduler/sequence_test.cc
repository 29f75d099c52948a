#include "scheduler/sequence.h"

#include <gtest/gtest.h>

#include "tests/testing/requests.h"

namespace quire {
namespace {

TEST(Sequence, AsManyOutputsAreWithinSomeBlocksAsTheirMostBlocksSay) {
  BlockPool pool(1);
  for (const int32_t window : {0, 2, 100}) {
    for (const int32_t prompt : {1, 63, 64, 65, 200}) {
      for (const int32_t max_tokens : {1, 64, 130}) {
        Request request = MakeRequest(1, prompt, max_tokens);
        request.kv.window_tokens = window;
        const Sequence sequence(request, 0, 0, pool);
        for (auto blocks = static_cast<int32_t>(sequence.MostBlocks(1)); blocks < 40; ++blocks) {
          const int32_t outputs = sequence.OutputsWithin(blocks);
          EXPECT_GE(outputs, 1);
          EXPECT_LE(sequence.MostBlocks(outputs), blocks);
          EXPECT_GT(sequence.MostBlocks(outputs + 1), blocks);
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire
