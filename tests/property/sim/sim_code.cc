// Prints a case as the code of a test; fields with their default value are left out.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/property/sim/sim_case.h"

namespace quire::sim {
namespace {

class Fields {
 public:
  template <typename T>
  Fields& Field(const char* name, T value, T usual) {
    if (value == usual) return *this;
    if constexpr (std::is_same_v<T, bool>) {
      parts_.push_back(absl::StrCat(".", name, " = ", value ? "true" : "false"));
    } else {
      parts_.push_back(absl::StrCat(".", name, " = ", value));
    }
    return *this;
  }
  std::string Braced() const { return absl::StrCat("{", absl::StrJoin(parts_, ", "), "}"); }

 private:
  std::vector<std::string> parts_;
};

std::string CodeOf(const Config& config) {
  const Config usual;
  return Fields()
      .Field("num_blocks", config.num_blocks, usual.num_blocks)
      .Field("context_tokens", config.context_tokens, usual.context_tokens)
      .Field("step_tokens", config.step_tokens, usual.step_tokens)
      .Field("max_running", config.max_running, usual.max_running)
      .Field("max_waiting", config.max_waiting, usual.max_waiting)
      .Field("max_waiting_tokens", config.max_waiting_tokens, usual.max_waiting_tokens)
      .Field("max_queue_ns", config.max_queue_ns, usual.max_queue_ns)
      .Field("nan_rows", config.nan_rows, usual.nan_rows)
      .Field("prefix_cache", config.prefix_cache, usual.prefix_cache)
      .Field("hash_bits", config.hash_bits, usual.hash_bits)
      .Field("fcfs", config.fcfs, usual.fcfs)
      .Field("ageing_ns", config.ageing_ns, usual.ageing_ns)
      .Field("max_bypasses", config.max_bypasses, usual.max_bypasses)
      .Field("max_preemptions", config.max_preemptions, usual.max_preemptions)
      .Field("weight_0", config.weight_0, usual.weight_0)
      .Field("weight_1", config.weight_1, usual.weight_1)
      .Field("target_itl_ns", config.target_itl_ns, usual.target_itl_ns)
      .Braced();
}

std::string CodeOf(const Submit& submit) {
  const Submit usual;
  return Fields()
      .Field("id", submit.id, usual.id)
      .Field("prompt", submit.prompt, usual.prompt)
      .Field("max_tokens", submit.max_tokens, usual.max_tokens)
      .Field("shared", submit.shared, usual.shared)
      .Field("family", submit.family, usual.family)
      .Field("n", submit.n, usual.n)
      .Field("priority", submit.priority, usual.priority)
      .Field("tenant", submit.tenant, usual.tenant)
      .Field("domain", submit.domain, usual.domain)
      .Field("deadline", submit.deadline, usual.deadline)
      .Field("time_limit", submit.time_limit, usual.time_limit)
      .Field("min_tokens", submit.min_tokens, usual.min_tokens)
      .Field("sampled", submit.sampled, usual.sampled)
      .Field("bypass", submit.bypass, usual.bypass)
      .Field("follows", submit.follows, usual.follows)
      .Field("window", submit.window, usual.window)
      .Field("sinks", submit.sinks, usual.sinks)
      .Braced();
}

const char* CodeOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kCancelled:
      return "FinishReason::kCancelled";
    case FinishReason::kSlowReader:
      return "FinishReason::kSlowReader";
    case FinishReason::kStop:
      return "FinishReason::kStop";
    default:
      return "FinishReason::kAborted";
  }
}

const char* CodeOf(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "Fault::kNone";
    case Fault::kAbort:
      return "Fault::kAbort";
    case Fault::kStall:
      return "Fault::kStall";
    case Fault::kNonFinite:
      return "Fault::kNonFinite";
    case Fault::kNoToken:
      return "Fault::kNoToken";
  }
  return "";
}

std::string CodeOf(const Op& op) {
  switch (op.kind) {
    case OpKind::kSubmit:
      return absl::StrCat("Add(", CodeOf(op.submit), ")");
    case OpKind::kAbort:
      if (op.output >= 0) return absl::StrCat("AbortOutput(", op.id, ", ", op.output, ")");
      if (op.reason == FinishReason::kAborted) return absl::StrCat("Abort(", op.id, ")");
      return absl::StrCat("Abort(", op.id, ", ", CodeOf(op.reason), ")");
    case OpKind::kStall:
      return absl::StrCat("Stall(", op.id, ")");
    case OpKind::kResume:
      return absl::StrCat("Resume(", op.id, ")");
    case OpKind::kTick:
      return absl::StrCat("Tick(", op.nanos, ")");
    case OpKind::kDrain:
      return "Drain()";
    case OpKind::kEvict:
      return absl::StrCat("Evict(", op.blocks, ")");
    case OpKind::kStep:
      break;
  }
  if (op.fault != Fault::kNone) {
    return absl::StrCat("Step(", op.nanos, ", ", CodeOf(op.fault), ", ", op.victim, ")");
  }
  return op.nanos == 0 ? "Step()" : absl::StrCat("Step(", op.nanos, ")");
}

}  // namespace

std::string ToCode(const Case& c, const std::string& test_name) {
  std::string code =
      absl::StrCat("TEST(SimFound, ", test_name,
                   ") {\n  const Case c{\n      .config = ", CodeOf(c.config), ",\n      .ops = {");
  for (size_t i = 0; i < c.ops.size(); ++i) {
    absl::StrAppend(&code, i == 0 ? "" : ",\n              ", CodeOf(c.ops[i]));
  }
  absl::StrAppend(&code, "}};\n  EXPECT_EQ(RunCase(c).problem, \"\");\n}\n");
  return code;
}

}  // namespace quire::sim
