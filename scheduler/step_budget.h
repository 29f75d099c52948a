// How one step's token budget is shared among the running sequences: a pure function.
#pragma once

#include <cstdint>
#include <span>

namespace quire {

// uncomputed[i] >= 1: tokens that sequence i, highest rank first, could compute now; grants[i]
// receives its share; `order` holds every i once, whom to serve first. One token for sequence 0, so
// that it always advances; then one for each sequence that needs no more (decode must not wait for
// prompts); then prompts, in order. Returns the sum of the grants, <= budget. budget >= 1.
int32_t ShareBudget(std::span<const int32_t> uncomputed, std::span<const int32_t> order,
                    int32_t budget, std::span<int32_t> grants);

}  // namespace quire
