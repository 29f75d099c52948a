// A small paged KV cache with known contents and a step over it, for attention tests. The data of a
// token depend on (sequence id, position) alone, so the same sequence can be met in any batch,
// chunk or block table.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/attention.h"
#include "runtime/kernels/attention_ref.h"
#include "runtime/kernels/kv_append.h"
#include "runtime/kv_cache/kv_pool.h"
#include "runtime/step_batch.h"

namespace quire {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

// A sequence's share of the step: its last `rows` of `kv_len` tokens.
struct WorldSeq {
  int32_t id = 0;
  int32_t kv_len = 1;
  int32_t rows = 1;
  int32_t prefix = 0;                 // SequenceFacts
  std::vector<int32_t> globals = {};  // global tokens
  int32_t cross_len = 0;              // of an encoder with data of its own
  int32_t shared_id = 0;              // its first `shared_tokens` are those of this id
  int32_t shared_tokens = 0;
  int32_t window_tokens = 0, sink_tokens = 0;  // SeqSpan
};

struct WorldOptions {
  AttentionShape shape;
  KvDType dtype = KvDType::kBF16;
  AttentionArithmetic arithmetic = AttentionArithmetic::kF32;
  float fill = 0.0f;     // of the whole pool before anything is appended
  uint32_t shuffle = 0;  // != 0: block ids in this order
  AttentionSpec spec = {};
  bool share_blocks = false;  // whole blocks of shared tokens are the same physical ones
  // Edits the rows of a token of one sequence: q, k, v.
  std::function<void(int32_t id, int32_t position, float* q, float* k, float* v)> edit = {};
};

class AttentionWorld {
 public:
  AttentionWorld(const WorldOptions& options, const std::vector<WorldSeq>& seqs);

  AttentionOptions KernelOptions() const;
  // All rows, by a kernel made from `options` and its number of workers. [rows][num_heads *
  // head_dim].
  std::vector<float> Run(const AttentionOptions& options) const;
  std::vector<float> Run() const { return Run(KernelOptions()); }
  std::vector<float> RunWith(AttentionKernel& kernel, int32_t workers, int32_t layer = 0) const;
  std::vector<float> Reference(int32_t layer = 0) const;
  // Rows of the i-th sequence of the batch.
  std::vector<float> RowsOf(const std::vector<float>& out, int32_t i) const;

  const StepBatch& batch() const { return batch_; }
  const AttentionFacts& facts() const { return facts_; }
  AttentionReferenceInput ReferenceInput(int32_t layer = 0) const;
  // Makes a block of a sequence unusable: a kernel that looks at it crashes.
  void LoseBlock(int32_t seq, int32_t block) {
    block_ids_[seqs_[seq].table_begin + block] = BlockId{1 << 24};
  }
  KvLayerView layer() const { return pool_.Layer(0); }
  int32_t width() const { return options_.shape.num_heads * options_.shape.head_dim; }
  float max_abs_v() const { return max_abs_v_; }

 private:
  void CreatePool(int32_t blocks);
  BlockId NextBlock() { return free_blocks_[next_block_++]; }
  void AddTable(const WorldSeq& seq);
  void AddFacts(const WorldSeq& seq);
  void FillQueries(const WorldSeq& seq);
  // Tokens of `seq`, or of its encoder.
  void Append(const WorldSeq& seq, const BlockId* table, bool encoder);
  void TokenData(int32_t id, int32_t token, float* q, float* k, float* v);

  WorldOptions options_;
  KvPool pool_;
  std::vector<float> q_;
  std::vector<BlockId> free_blocks_, block_ids_, cross_block_ids_;
  size_t next_block_ = 0;
  std::map<std::pair<int32_t, int32_t>, BlockId> shared_blocks_;  // of (id, block of the sequence)
  std::vector<SeqSpan> seqs_;
  std::vector<SequenceFacts> seq_facts_;
  std::vector<uint64_t> global_words_;
  StepBatch batch_;
  AttentionFacts facts_;
  float max_abs_v_ = 0;
};

// What the KV cache holds and what the products are computed in. Every pair that runs here.
struct AttentionMode {
  KvDType dtype;
  AttentionArithmetic arithmetic;
  // Of the kernel against plain f32 loops, relative to the largest |v|, which bounds every output.
  float tolerance;
  std::string name;
};
std::vector<AttentionMode> AttentionModes();

// Equal bits; NaN equals NaN.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace quire
