// Fused attention over the paged KV cache: online softmax over tiles of 64 tokens, the products as
// ukernels. Masks and biases (attention_spec.h) are computed per tile; tiles that no row sees are
// skipped; leading chunks that sequences of a step share physically are read once for all. One
// arithmetic for prefill and decode: a row's bits depend on its query, its visible tokens and the
// instruction set alone, never on batch mates, chunking, block ids or the number of workers. Plan
// is called by the engine thread, Run by every worker between two barriers. Owns its ukernels and
// scratch; views the step's batch.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/cpu_features.h"
#include "runtime/kernels/attention_spec.h"
#include "runtime/kv_cache/kv_layout.h"
#include "runtime/step_batch.h"

namespace quire {

struct AttentionShape {
  int32_t num_heads = 0;  // multiple of num_kv_heads
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;  // even, 2..256
  float scale = 0;       // of q . k, usually 1 / sqrt(head_dim)
};

// Which code multiplies Q by K and P by V. All give the same bits; tests force each.
enum class AttentionProducts : uint8_t {
  kFastest,     // own tile for few rows, ukernels otherwise
  kUkernel,     // oneDNN brgemm for every row count
  kSequential,  // plain loops: the definition, and the fallback where no code can be generated
};

// In what the products are computed; part of the arithmetic, so fixed per process.
enum class AttentionArithmetic : uint8_t {
  kBest,  // bf16 where the processor is faster at it and the KV cache is bf16, else f32
  kF32,
  kBF16,  // queries and weights rounded to bf16, sums in f32; bf16 KV only
};  // An integer KV cache has one arithmetic of its own, see attention_int.h.

struct AttentionOptions {
  AttentionShape shape;
  KvDType kv_dtype = KvDType::kBF16;
  int32_t num_layers = 1;  // attentions of a step; a decoder layer with cross-attention has two
  int32_t workers = 1;
  int32_t max_rows = 1;        // of a step
  int32_t max_seqs = 1;        // of a step
  int32_t context_tokens = 1;  // longest kv_len
  IsaLevel isa = ActiveIsa();
  AttentionProducts products = AttentionProducts::kFastest;
  AttentionArithmetic arithmetic = AttentionArithmetic::kBest;
  bool split_long_items = true;  // work split only: same bits either way
  bool cascade = true;           // read shared chunks once: same bits either way
  AttentionSpec spec = {};
  int32_t cross_tokens = 1;  // longest SequenceFacts::cross_len
};

// Queries after rope and results of one layer. Head h of row r starts at r * stride + h * head_dim.
struct AttentionIo {
  const float* q = nullptr;  // [rows][num_heads * head_dim]
  int64_t q_stride = 0;
  float* out = nullptr;  // same shape; may not overlap q
  int64_t out_stride = 0;
};

class AttentionKernel {
 public:
  // Generates every ukernel and sizes all scratch. INVALID_ARGUMENT for a shape that it cannot
  // serve.
  static absl::StatusOr<std::unique_ptr<AttentionKernel>> Create(const AttentionOptions& options);
  ~AttentionKernel();
  AttentionKernel(const AttentionKernel&) = delete;
  AttentionKernel& operator=(const AttentionKernel&) = delete;

  // Splits a step into items, longest first. The arrays of `batch` and `facts` must outlive the
  // step's Runs. Allocates nothing.
  void Plan(const StepBatch& batch, const AttentionFacts& facts = {});

  // Does this worker's share of one layer; the layer is done when every worker has returned. Each
  // layer at most once per Plan; K and V of the step's rows were appended before. Allocates nothing
  // itself (see onednn/brgemm.h).
  void Run(int32_t worker, int32_t layer, const KvLayerView& kv, const AttentionIo& io);

  int64_t scratch_bytes() const;
  // Multiply-adds of the planned step over all layers: sum over rows of 2 * visible tokens *
  // num_heads * head_dim.
  int64_t planned_macs() const;
  // KV bytes that the planned step reads over all layers: each tile that a sequence sees once, each
  // tile of a shared item once for its sequences.
  int64_t planned_kv_bytes() const;
  bool uses_ukernels() const;  // false: no code could be generated here
  bool uses_bf16_products() const;

 private:
  struct State;
  explicit AttentionKernel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quire
