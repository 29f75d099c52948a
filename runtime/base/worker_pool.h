// Fork-join pool of pinned threads: the only parallelism of the runtime. One owner thread calls Run
// and takes part as worker 0; the pool owns the others. Workers spin briefly, then park on a futex,
// and run with FTZ and DAZ set. Run allocates nothing.
#pragma once

#include <cstdint>
#include <memory>

namespace quire {

// The half-open part of [0, count) that `worker` of `workers` owns: contiguous, sizes differ by at
// most one.
struct IndexRange {
  int32_t begin, end;
};
constexpr IndexRange SplitEvenly(int32_t count, int32_t worker, int32_t workers) {
  return {static_cast<int32_t>(int64_t{count} * worker / workers),
          static_cast<int32_t>(int64_t{count} * (worker + 1) / workers)};
}

struct WorkerPoolOptions {
  int32_t threads = 1;  // workers in all, the caller included; >= 1
  // Worker i >= 1 runs on the i-th processor of the affinity mask, if there are enough; refusal is
  // no error. The owner is not touched: threads it starts later would inherit its mask. See
  // PinOwner.
  bool pin = true;
};

class WorkerPool {
 public:
  explicit WorkerPool(const WorkerPoolOptions& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int32_t size() const;

  // Pins the calling thread to the first processor, as worker 0. For a thread that will call Run
  // from now on and starts no threads: the engine thread.
  void PinOwner();

  // Calls fn(worker) once on every worker, 0..size()-1, and returns when all have returned. Owner
  // thread only.
  template <typename F>
  void Run(F&& fn) {
    RunRaw([](void* context, int32_t worker) { (*static_cast<F*>(context))(worker); }, &fn);
  }

  // Inside Run only: waits until every worker has called it.
  void Barrier();

  // Inside Run only, by every worker with the same count and grain: together they call fn(begin,
  // end) for disjoint ranges of at most `grain` that cover [0, count), then meet at a barrier. A
  // worker does its own contiguous part first (the same one every time, so it finds it in its
  // cache) and then helps the others: a processor that is slowed by its neighbours holds up nobody
  // for longer than a grain.
  template <typename F>
  void Share(int32_t worker, int32_t count, int32_t grain, F&& fn) {
    const int32_t turn = NextTurn(worker);
    for (int32_t i = 0; i < size(); ++i) {
      const int32_t owner = worker + i < size() ? worker + i : worker + i - size();
      const IndexRange part = SplitEvenly(count, owner, size());
      while (true) {
        const int32_t taken = TakeGrain(owner, turn, part.end - part.begin, grain);
        if (taken >= part.end - part.begin) break;
        fn(part.begin + taken,
           taken + grain < part.end - part.begin ? part.begin + taken + grain : part.end);
      }
    }
    Barrier();
  }

 private:
  int32_t NextTurn(int32_t worker);
  // Hands out the next `grain` of an owner's part; returns how much was taken before, >= limit if
  // nothing is left.
  int32_t TakeGrain(int32_t owner, int32_t turn, int32_t limit, int32_t grain);
  void RunRaw(void (*fn)(void* context, int32_t worker), void* context);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire
