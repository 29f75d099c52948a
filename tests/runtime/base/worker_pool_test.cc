#include "runtime/base/worker_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/testing/count_allocations.h"

namespace quire {
namespace {

class WorkerPoolTest : public testing::TestWithParam<int32_t> {};

TEST_P(WorkerPoolTest, RunCallsEveryWorkerOnce) {
  WorkerPool pool({.threads = GetParam()});
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> calls(GetParam(), 0);
  for (int round = 1; round <= 200; ++round) {
    pool.Run([&](int32_t worker) { ++calls[worker]; });
    for (int c : calls) ASSERT_EQ(c, round);
  }
}

TEST_P(WorkerPoolTest, BarrierSeparatesPhases) {
  WorkerPool pool({.threads = GetParam()});
  const int n = GetParam();
  std::vector<int> phase(n, 0);  // plain ints: the barrier alone orders them (and TSan watches)
  std::atomic<int> wrong{0};
  pool.Run([&](int32_t worker) {
    for (int p = 1; p <= 300; ++p) {
      phase[worker] = p;
      pool.Barrier();
      for (int v : phase) wrong += v != p;
      pool.Barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_P(WorkerPoolTest, DelayedWorkerIsWaitedFor) {
  WorkerPool pool({.threads = GetParam()});
  int late = 0;
  int seen_by_first = -1;
  pool.Run([&](int32_t worker) {
    if (worker == pool.size() - 1) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(5));  // far beyond the spin: the others park
      late = 7;
    }
    pool.Barrier();
    if (worker == 0) seen_by_first = late;
  });
  EXPECT_EQ(seen_by_first, 7);
}

TEST_P(WorkerPoolTest, ParkedWorkersWakeForTheNextRun) {
  WorkerPool pool({.threads = GetParam()});
  std::atomic<int> calls{0};
  for (int round = 0; round < 5; ++round) {
    pool.Run([&](int32_t) { ++calls; });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(calls, 5 * GetParam());
}

TEST_P(WorkerPoolTest, SubnormalsAreZeroInWorkersAndNotAfterwards) {
  WorkerPool pool({.threads = GetParam()});
  std::vector<float> products(GetParam(), 1.0f);
  volatile float tiny = std::numeric_limits<float>::min();
  pool.Run([&](int32_t worker) { products[worker] = tiny * 0.5f; });
  for (float p : products) EXPECT_EQ(p, 0.0f);
  EXPECT_GT(tiny * 0.5f, 0.0f) << "the caller's floating-point mode must come back";
}

TEST_P(WorkerPoolTest, ShareCallsEveryIndexOnceAndThenMeets) {
  WorkerPool pool({.threads = GetParam()});
  for (const int32_t count : {0, 1, 5, 60, 1000}) {
    for (const int32_t grain : {1, 7, 64}) {
      std::vector<int> calls(count,
                             0);  // plain ints: disjoint ranges, and the barrier orders the check
      std::atomic<int> wrong{0};
      pool.Run([&](int32_t worker) {
        for (int round = 1; round <= 5; ++round) {
          pool.Share(worker, count, grain, [&](int32_t begin, int32_t end) {
            wrong += end - begin > grain || begin >= end;
            for (int32_t i = begin; i < end; ++i) ++calls[i];
          });
          for (int c : calls) wrong += c != round;
          pool.Barrier();
        }
      });
      EXPECT_EQ(wrong, 0) << count << " in grains of " << grain;
    }
  }
}

TEST_P(WorkerPoolTest, SlowWorkersPartIsDoneByTheOthers) {
  if (GetParam() == 1) return;  // nobody else to do it
  WorkerPool pool({.threads = GetParam()});
  std::atomic<int> done_by_others{0};
  pool.Run([&](int32_t worker) {
    if (worker == 0) {  // sleeps until the others have done all but the grain it holds
      pool.Share(worker, 100, 1, [&](int32_t, int32_t) {
        while (done_by_others < 99) std::this_thread::yield();
      });
    } else {
      pool.Share(worker, 100, 1, [&](int32_t, int32_t) { ++done_by_others; });
    }
  });
  EXPECT_GE(done_by_others, 99);  // 100 if worker 0 came too late for any
}

TEST_P(WorkerPoolTest, RunAllocatesNothing) {
  WorkerPool pool({.threads = GetParam()});
  std::vector<int64_t> sums(GetParam(), 0);
  const AllocationCounter allocations;
  for (int round = 0; round < 50; ++round) {
    pool.Run([&](int32_t worker) {
      sums[worker] += worker;
      pool.Barrier();
    });
  }
  EXPECT_EQ(allocations.ours(), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkerPoolTest, testing::Values(1, 2, 3, 8));

TEST(WorkerPool, LeavesTheOwnersAffinityAloneUntilAsked) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "needs two processors";
  std::thread([&] {
    WorkerPool pool({.threads = 2});
    pool.Run([](int32_t) {});
    sched_getaffinity(0, sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    pool.PinOwner();
    sched_getaffinity(0, sizeof after, &after);
    EXPECT_EQ(CPU_COUNT(&after), 1);
  }).join();
}

TEST(SplitEvenly, CoversEverythingOnceAndDiffersByAtMostOne) {
  for (int count : {0, 1, 7, 60, 3072}) {
    for (int workers : {1, 2, 3, 8}) {
      int next = 0;
      for (int w = 0; w < workers; ++w) {
        const IndexRange r = SplitEvenly(count, w, workers);
        EXPECT_EQ(r.begin, next);
        EXPECT_GE(r.end - r.begin, count / workers);
        EXPECT_LE(r.end - r.begin, count / workers + 1);
        next = r.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace quire
