// What a request yields when it runs alone, computed without scheduler, pool or batch: the fake
// model's chain folded over its tokens, the fake draw, and the stop rules restated. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/request.h"
#include "scheduler/token_event.h"
#include "tests/testing/fake_model_runner.h"

namespace quire::sim {

inline constexpr int32_t kVocab = 48;
inline constexpr TokenId kEndToken{3};

struct SoloOutput {
  std::vector<TokenId> tokens;                // the ending one included
  FinishReason finish = FinishReason::kNone;  // kStop, kLength or kError
};

// Rows of the model that yield NaN, if the case asks for them.
inline bool IsNanRow(const FakeRow& row) {
  return row.position % 61 == 17 && row.token == TokenId{5};
}

struct SoloOptions {
  int32_t limit_tokens = 0;  // prompt and output together
  bool nan_rows = false;
};

// One per output of the request.
std::vector<SoloOutput> RunAlone(const Request& request, const SoloOptions& options);

}  // namespace quire::sim
