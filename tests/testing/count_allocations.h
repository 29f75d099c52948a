// Counts calls of operator new in this process, on all threads, while a counter lives; one at a
// time. Link count_allocations.cc into the test to use it.
#pragma once

#include <cstdint>

namespace quire {

class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  // So far. Calls from inside oneDNN, whose ukernels make a small vector per execution, are counted
  // apart.
  int64_t ours() const;
  int64_t onednn() const;
};

}  // namespace quire
