#include "tests/property/sim/shrink.h"

#include <algorithm>
#include <cctype>

#include "tests/property/sim/isolate.h"
#include "tests/property/sim/sim_world.h"

namespace quire::sim {
namespace {

// The problem without its numbers: what must stay the same while a case shrinks.
std::string Kind(const std::string& problem) {
  std::string kind;
  for (char c : problem) {
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind.substr(0, 60);
}

class Shrinker {
 public:
  Shrinker(const Case& c, const Trial& trial, int32_t max_trials)
      : best_{.smallest = c, .problem = trial(c), .trials = 1},
        kind_(Kind(best_.problem)),
        trial_(trial),
        max_trials_(max_trials) {}

  Shrunk Run() {
    size_t before = 0;
    do {
      before = best_.smallest.ops.size();
      DeleteOperations();
    } while (best_.smallest.ops.size() < before && !Spent());
    PlainNumbers();
    DeleteOperations();
    return best_;
  }

 private:
  bool Spent() const { return best_.trials >= max_trials_; }

  // Keeps the candidate if it fails in the same way.
  bool Keep(const Case& candidate) {
    if (Spent()) return false;
    ++best_.trials;
    const std::string problem = trial_(candidate);
    if (problem.empty() || Kind(problem) != kind_) return false;
    best_.smallest = candidate;
    best_.problem = problem;
    return true;
  }

  // Delta debugging: runs of operations, from halves down to single ones, the last ones first.
  void DeleteOperations() {
    for (size_t run = std::max<size_t>(1, best_.smallest.ops.size() / 2); run > 0; run /= 2) {
      for (size_t end = best_.smallest.ops.size(); end > 0 && !Spent();) {
        const size_t begin = end > run ? end - run : 0;
        Case candidate = best_.smallest;
        candidate.ops.erase(candidate.ops.begin() + static_cast<ptrdiff_t>(begin),
                            candidate.ops.begin() + static_cast<ptrdiff_t>(end));
        Keep(candidate);
        end = begin;
      }
    }
  }

  // Sets a number of the case to a plainer value, if the problem stays.
  template <typename T>
  void Try(T& (*field)(Case&, size_t), size_t index, T plain) {
    Case candidate = best_.smallest;
    T& value = field(candidate, index);
    if (value == plain) return;
    value = plain;
    Keep(candidate);
  }

  void PlainNumbers();
  void PlainSubmit(size_t i);

  Shrunk best_;
  std::string kind_;
  const Trial& trial_;
  int32_t max_trials_;
};

void Shrinker::PlainSubmit(size_t i) {
  const Submit plain;
#define TRY(name)                                                                                 \
  Try<decltype(Submit::name)>([](Case& c, size_t k) -> auto& { return c.ops[k].submit.name; }, i, \
                              plain.name)
  TRY(n);
  TRY(priority);
  TRY(tenant);
  TRY(domain);
  TRY(deadline);
  TRY(time_limit);
  TRY(min_tokens);
  TRY(sampled);
  TRY(shared);
  TRY(family);
  TRY(bypass);
  TRY(follows);
  TRY(sinks);
  TRY(window);
#undef TRY
  const auto halve = [&](int32_t Submit::* field) {
    for (int32_t less = best_.smallest.ops[i].submit.*field - 1; less >= 1;) {
      Case candidate = best_.smallest;
      int32_t& value = candidate.ops[i].submit.*field;
      value -= less;
      less = Keep(candidate) ? std::min(less, value - 1) : less / 2;
    }
  };
  halve(&Submit::prompt);
  halve(&Submit::max_tokens);
}

void Shrinker::PlainNumbers() {
  for (size_t i = 0; i < best_.smallest.ops.size(); ++i) {
    if (best_.smallest.ops[i].kind == OpKind::kSubmit) PlainSubmit(i);
    Try<int32_t>([](Case& c, size_t k) -> auto& { return c.ops[k].nanos; }, i, 0);
    Try<int32_t>([](Case& c, size_t k) -> auto& { return c.ops[k].victim; }, i, 0);
    Try<Fault>([](Case& c, size_t k) -> auto& { return c.ops[k].fault; }, i, Fault::kNone);
  }
  const Config plain;
  for (const auto field : {&Config::prefix_cache, &Config::nan_rows}) {
    Case candidate = best_.smallest;
    if (!(candidate.config.*field)) continue;
    candidate.config.*field = false;
    Keep(candidate);
  }
  const auto config = [&](int32_t Config::* field) {
    Case candidate = best_.smallest;
    if (candidate.config.*field == plain.*field) return;
    candidate.config.*field = plain.*field;
    Keep(candidate);
  };
  config(&Config::hash_bits);
  config(&Config::context_tokens);
  config(&Config::max_waiting);
  config(&Config::max_waiting_tokens);
  config(&Config::max_queue_ns);
  config(&Config::step_tokens);
  config(&Config::max_running);
  config(&Config::num_blocks);
}

}  // namespace

std::string TryCase(const Case& c) {
  const auto work = [&](Progress& progress) {
    SetText(progress.problem, sizeof progress.problem, RunCase(c).problem);
  };
  return RunIsolated(work, 20).problem;
}

Shrunk Shrink(const Case& c, const Trial& trial, int32_t max_trials) {
  return Shrinker(c, trial, max_trials).Run();
}

}  // namespace quire::sim
