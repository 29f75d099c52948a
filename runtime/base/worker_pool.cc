#include "runtime/base/worker_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>
#include <vector>

#include "absl/log/check.h"

// Every hand-over is the same barrier: workers wait at it for the next Run, inside a phase, and at
// the end of Run. The owner is usually the last to arrive at the first, so that starting a Run
// costs one barrier.
namespace quire {
namespace {

constexpr uint32_t kFtzDaz = 0x8040;  // MXCSR: flush to zero, denormals are zero
constexpr int64_t kSpinNanos = 50'000;
constexpr int32_t kEagerLooks = 1000;  // without a pause, about 2 us: most waits end within them

void Pause() { __builtin_ia32_pause(); }

// Pauses that take about kSpinNanos here: a pause is 40 cycles on some CPUs and 140 on others.
int32_t CalibrateSpin() {
  constexpr int32_t kSample = 2000;
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < kSample; ++i) Pause();
  const int64_t nanos =
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count() + 1;
  return static_cast<int32_t>(std::clamp<int64_t>(kSample * kSpinNanos / nanos, 200, 20'000));
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Arrival, generation and sleepers live on separate lines: spinners read only the generation.
class SpinBarrier {
 public:
  SpinBarrier(int32_t parties, int32_t spins) : parties_(parties), spins_(spins) {}

  void Wait() {
    if (parties_ == 1) return;
    const uint32_t seen = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == parties_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(seen + 1, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) != 0) FutexWakeAll(generation_);
      return;
    }
    if (spins_ > 0) {
      for (int32_t i = 0; i < kEagerLooks; ++i) {
        if (generation_.load(std::memory_order_acquire) != seen) return;
      }
    }
    for (int32_t i = 0; i < spins_; ++i) {
      if (generation_.load(std::memory_order_acquire) != seen) return;
      Pause();
    }
    // The count goes up before the last look, and the releaser looks at it after its store: one
    // sees the other.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (generation_.load(std::memory_order_seq_cst) == seen) FutexWait(generation_, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  alignas(128) std::atomic<int32_t> arrived_{0};
  alignas(128) std::atomic<uint32_t> generation_{0};
  alignas(128) std::atomic<int32_t> sleepers_{0};
  const int32_t parties_, spins_;
};

// Processors this thread may use, ascending; empty if the system does not say.
std::vector<int> AllowedProcessors() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cpus.push_back(i);
  }
  return cpus;
}

void PinThisThread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set,
                               &set);  // refused in some sandboxes: slower, not wrong
}

}  // namespace

// How much of a worker's part of a Share has been handed out. Two counts take turns: when a Share
// begins, all workers have left the one before, so its owner sets that count back for the next.
struct alignas(128) ShareCursor {
  std::array<std::atomic<int32_t>, 2> taken{};
  int32_t turn = 0;  // read and written by the owner alone; the same for all workers inside a phase
};

struct WorkerPool::State {
  State(int32_t threads, int32_t spins)
      : size(threads), cursors(threads), barrier(threads, spins) {}

  void WorkerMain(int32_t worker) {
    if (pin) PinThisThread(cpus[worker % cpus.size()]);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFtzDaz);
    while (true) {
      barrier.Wait();
      if (stopping) return;
      fn(context, worker);
      barrier.Wait();
    }
  }

  const int32_t size;
  bool pin = false;
  std::vector<int> cpus;  // worker i is pinned to cpus[i % size]
  std::vector<std::thread> threads;
  std::vector<ShareCursor> cursors;  // by worker
  // Written by the owner before the barrier that starts a Run, read by the workers after it.
  void (*fn)(void*, int32_t) = nullptr;
  void* context = nullptr;
  bool stopping = false;
  SpinBarrier barrier;
};

WorkerPool::WorkerPool(const WorkerPoolOptions& options) {
  CHECK_GE(options.threads, 1);
  std::vector<int> cpus = AllowedProcessors();
  // With more workers than processors a spinner only delays the one it waits for.
  const bool oversubscribed = static_cast<size_t>(options.threads) > cpus.size();
  state_ = std::make_unique<State>(options.threads, oversubscribed ? 0 : CalibrateSpin());
  state_->pin = options.pin && !cpus.empty() && !oversubscribed;
  state_->cpus = std::move(cpus);
  for (int32_t i = 1; i < options.threads; ++i) {
    state_->threads.emplace_back([state = state_.get(), i] { state->WorkerMain(i); });
  }
}

WorkerPool::~WorkerPool() {
  state_->stopping = true;
  state_->barrier.Wait();
  for (std::thread& thread : state_->threads) thread.join();
}

int32_t WorkerPool::size() const { return state_->size; }

void WorkerPool::PinOwner() {
  if (state_->pin) PinThisThread(state_->cpus[0]);
}

void WorkerPool::Barrier() { state_->barrier.Wait(); }

int32_t WorkerPool::NextTurn(int32_t worker) {
  ShareCursor& cursor = state_->cursors[worker];
  cursor.taken[cursor.turn].store(0, std::memory_order_relaxed);
  cursor.turn ^= 1;
  return cursor.turn;
}

int32_t WorkerPool::TakeGrain(int32_t owner, int32_t turn, int32_t limit, int32_t grain) {
  std::atomic<int32_t>& taken = state_->cursors[owner].taken[turn];
  const int32_t seen = taken.load(std::memory_order_relaxed);  // spares a finished part the write
  return seen >= limit ? seen : taken.fetch_add(grain, std::memory_order_relaxed);
}

void WorkerPool::RunRaw(void (*fn)(void* context, int32_t worker), void* context) {
  const uint32_t saved = __builtin_ia32_stmxcsr();
  state_->fn = fn;
  state_->context = context;
  state_->barrier.Wait();
  __builtin_ia32_ldmxcsr(saved | kFtzDaz);
  fn(context, 0);
  __builtin_ia32_ldmxcsr(saved);
  state_->barrier.Wait();
}

}  // namespace quire
