// Fork-join pool of pinned threads: the only parallelism of the runtime. One owner thread calls Run and
// takes part as worker 0; the pool owns the others. Workers spin briefly, then park on a futex, and run
// with FTZ and DAZ set. Run allocates nothing.
#pragma once

#include <cstdint>
#include <memory>

namespace quire {

struct WorkerPoolOptions {
  int32_t threads = 1;   // workers in all, the caller included; >= 1
  // Worker i >= 1 runs on the i-th processor of the affinity mask, if there are enough; refusal is no error.
  // The owner is not touched: threads it starts later would inherit its mask. See PinOwner.
  bool pin = true;
};

class WorkerPool {
 public:
  explicit WorkerPool(const WorkerPoolOptions& options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int32_t size() const;

  // Pins the calling thread to the first processor, as worker 0. For a thread that will call Run from now on
  // and starts no threads: the engine thread.
  void PinOwner();

  // Calls fn(worker) once on every worker, 0..size()-1, and returns when all have returned. Owner thread only.
  template <typename F>
  void Run(F&& fn) {
    RunRaw([](void* context, int32_t worker) { (*static_cast<F*>(context))(worker); }, &fn);
  }

  // Inside Run only: waits until every worker has called it.
  void Barrier();

 private:
  void RunRaw(void (*fn)(void* context, int32_t worker), void* context);
  struct State;
  std::unique_ptr<State> state_;
};

// The half-open part of [0, count) that `worker` of `workers` owns: contiguous, sizes differ by at most one.
struct IndexRange {
  int32_t begin, end;
};
constexpr IndexRange SplitEvenly(int32_t count, int32_t worker, int32_t workers) {
  return {static_cast<int32_t>(int64_t{count} * worker / workers),
          static_cast<int32_t>(int64_t{count} * (worker + 1) / workers)};
}

}  // namespace quire
