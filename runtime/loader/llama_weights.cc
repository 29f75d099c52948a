#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/absl_view.h"
#include "runtime/loader/llama_reader.h"
#include "runtime/tensor/arena.h"

namespace quire {
namespace {

class Planner {
 public:
  explicit Planner(const GgufHeader& header) : header_(&header) {}

  // Finds `name` as [rows, cols], of any type. False if it is absent and optional.
  bool Matrix(const std::string& name, int32_t rows, int32_t cols, PackedMatrix& target,
              bool required = true) {
    const GgufTensor* tensor = Find(name, cols, rows, required);
    if (tensor == nullptr) return false;
    target = {.type = tensor->type,
              .rows = rows,
              .cols = cols,
              .panel_bytes = PanelBytes(tensor->type, cols)};
    plan_.entries.push_back({.tensor = tensor, .matrix = &target});
    plan_.arena_bytes += Arena::Align(PackedBytes(tensor->type, rows, cols));
    return true;
  }

  // Finds `name` as [size], of a float type.
  void Vector(const std::string& name, int32_t size, std::span<const float>& target,
              bool required = true) {
    const GgufTensor* tensor = Find(name, size, 1, required);
    if (tensor == nullptr) return;
    if (TraitsOf(tensor->type).block_elements != 1) {
      problems_.push_back(absl::StrCat("tensor ", name, ": found type ",
                                       View(TraitsOf(tensor->type).name),
                                       ", expected F32, F16 or BF16"));
      return;
    }
    plan_.entries.push_back({.tensor = tensor, .vector = &target});
    plan_.arena_bytes += Arena::Align(static_cast<size_t>(size) * sizeof(float));
  }

  const std::vector<std::string>& problems() const { return problems_; }
  bool Used(const std::string& name) const { return used_.contains(name); }
  WeightPlan TakePlan() { return std::move(plan_); }

 private:
  const GgufTensor* Find(const std::string& name, int32_t dim0, int32_t dim1, bool required) {
    const GgufTensor* tensor = header_->FindTensor(name);
    if (tensor == nullptr) {
      if (required) problems_.push_back(absl::StrCat("tensor ", name, ": missing"));
      return nullptr;
    }
    used_.insert(name);
    const std::array<uint64_t, 4> expected = {static_cast<uint64_t>(dim0),
                                              static_cast<uint64_t>(dim1), 1, 1};
    if (tensor->dims == expected) return tensor;
    problems_.push_back(absl::StrCat("tensor ", name, ": found shape ", ShapeText(*tensor),
                                     ", expected [", dim0,
                                     dim1 == 1 ? "" : absl::StrCat(", ", dim1), "]"));
    return nullptr;
  }

  const GgufHeader* header_;
  WeightPlan plan_;
  std::vector<std::string> problems_;
  std::set<std::string> used_;
};

void PlanLayer(Planner& plan, const ModelConfig& c, int32_t index, LayerWeights& layer) {
  const auto name = [&](std::string_view part) {
    return absl::StrCat("blk.", index, ".", View(part), ".weight");
  };
  const int32_t q_rows = c.num_heads * c.head_dim, kv_rows = c.num_kv_heads * c.head_dim;
  plan.Vector(name("attn_norm"), c.hidden_size, layer.attention_norm);
  plan.Matrix(name("attn_q"), q_rows, c.hidden_size, layer.wq);
  plan.Matrix(name("attn_k"), kv_rows, c.hidden_size, layer.wk);
  plan.Matrix(name("attn_v"), kv_rows, c.hidden_size, layer.wv);
  plan.Matrix(name("attn_output"), c.hidden_size, q_rows, layer.wo);
  plan.Vector(name("ffn_norm"), c.hidden_size, layer.ffn_norm);
  plan.Matrix(name("ffn_gate"), c.ffn_size, c.hidden_size, layer.gate);
  plan.Matrix(name("ffn_up"), c.ffn_size, c.hidden_size, layer.up);
  plan.Matrix(name("ffn_down"), c.hidden_size, c.ffn_size, layer.down);
}

// Biases and per-layer extras change the result, so they are refused; what is unknown is named in a
// warning.
std::vector<std::string> CheckExtras(const GgufHeader& header, const Planner& plan,
                                     std::vector<std::string>& warnings) {
  std::vector<std::string> refused, ignored;
  for (const GgufTensor& tensor : header.tensors) {
    if (plan.Used(tensor.name)) continue;
    if (tensor.name.ends_with(".bias")) {
      refused.push_back(
          absl::StrCat("tensor ", Printable(tensor.name), ": biases are not supported"));
    } else if (ignored.size() < 16) {
      ignored.push_back(Printable(tensor.name));
    }
  }
  if (!ignored.empty())
    warnings.push_back(absl::StrCat("unknown tensors are ignored: ", absl::StrJoin(ignored, ", ")));
  return refused;
}

// The most frequent type of the matrices, by bytes.
std::string_view MainType(const WeightPlan& plan) {
  std::map<std::string_view, uint64_t> bytes;
  for (const WeightPlan::Entry& e : plan.entries) {
    if (e.matrix != nullptr) bytes[TraitsOf(e.tensor->type).name] += e.tensor->bytes;
  }
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(bytes.begin(), bytes.end(), less)->first;
}

uint64_t Elements(const GgufTensor& t) { return t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]; }

void SumUp(const WeightPlan& plan, bool tied, ModelConfig& config, ModelWeights& weights) {
  weights.bytes = plan.arena_bytes;
  config.parameter_count = 0;
  for (const WeightPlan::Entry& e : plan.entries) config.parameter_count += Elements(*e.tensor);
  const PackedMatrix& table = weights.embedding;
  const size_t table_bytes = PackedBytes(table.type, table.rows, table.cols);
  // A step reads all matrices once; of a separate embedding only a row.
  weights.bytes_per_token =
      tied ? plan.arena_bytes : plan.arena_bytes - table_bytes + table.panel_bytes;
  config.quantization = MainType(plan);
}

}  // namespace

absl::StatusOr<WeightPlan> PlanLlamaWeights(const ModelFile& file, const GgufHeader& header,
                                            ModelConfig& config, ModelWeights& weights,
                                            std::vector<std::string>& warnings) {
  Planner planner(header);
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  planner.Matrix("token_embd.weight", config.vocab_size, config.hidden_size, weights.embedding);
  for (int32_t i = 0; i < config.num_layers; ++i) {
    PlanLayer(planner, config, i, weights.layers[static_cast<size_t>(i)]);
  }
  planner.Vector("output_norm.weight", config.hidden_size, weights.output_norm);
  planner.Vector("rope_freqs.weight", config.rope_dims / 2, weights.rope_factors,
                 /*required=*/false);
  const bool tied =
      !planner.Matrix("output.weight", config.vocab_size, config.hidden_size, weights.lm_head,
                      /*required=*/false);
  std::vector<std::string> problems = planner.problems();
  for (std::string& refused : CheckExtras(header, planner, warnings))
    problems.push_back(std::move(refused));
  if (!problems.empty()) {
    const size_t listed = std::min<size_t>(problems.size(), 32);
    const std::string more =
        listed < problems.size() ? absl::StrCat("; and ", problems.size() - listed, " more") : "";
    problems.resize(listed);
    return file.Error(absl::StrCat(absl::StrJoin(problems, "; "), more));
  }
  WeightPlan plan = planner.TakePlan();
  SumUp(plan, tied, config, weights);
  return plan;
}

}  // namespace quire
