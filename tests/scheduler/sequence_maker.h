// Sequences outside a scheduler.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/sequence.h"
#include "tests/testing/requests.h"

namespace quire {

class SequenceMaker {
 public:
  // The `order`-th arrival, with a prompt of so many tokens.
  Sequence& Make(uint64_t order, int32_t prompt_tokens = 1) {
    requests_.push_back(std::make_unique<Request>(MakeRequest(order + 1, prompt_tokens, 4)));
    sequences_.push_back(std::make_unique<Sequence>(*requests_.back(), 0, order, pool_));
    return *sequences_.back();
  }
  BlockPool& pool() { return pool_; }

 private:
  BlockPool pool_{16};
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace quire
