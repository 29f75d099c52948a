// Counts calls of operator new in this process, all threads. Link count_allocations.cc into the test to use it.
#pragma once

#include <cstdint>

namespace quire {

int64_t AllocationCount();

}  // namespace quire
