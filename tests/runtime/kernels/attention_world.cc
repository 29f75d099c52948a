#include "tests/runtime/kernels/attention_world.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "absl/log/check.h"

namespace quire {
namespace {

float Noise(uint64_t key, uint64_t index) {  // in [-1, 1), splitmix64
  uint64_t z = key * 0x9e3779b97f4a7c15u + index * 0xd1b54a32d192ed03u + 0x2545f4914f6cdd1du;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<float>(static_cast<double>(z >> 11) * 0x1p-52 - 1.0);
}

constexpr int32_t kEncoderIds = 1000;  // the encoder of sequence id has the data of id + this

}  // namespace

std::vector<AttentionMode> AttentionModes() {
  // Two f32 evaluations of one formula: sums of up to 1000 products differ in order, exp in 2 ulp.
  constexpr float kF32Tolerance = 2e-5f;
  // Queries and weights rounded to 8 bits.
  constexpr float kBf16Tolerance = 2e-2f;
  // Queries rounded to 15 bits of their largest element, weights likewise.
  constexpr float kIntTolerance = 3e-4f;
  // Those of 256 dims keep 12 bits, of the largest element after the Hadamard transform.
  constexpr float kInt16Tolerance = 2e-3f;
  return {{KvDType::kF32, AttentionArithmetic::kF32, kF32Tolerance, "f32"},
          {KvDType::kBF16, AttentionArithmetic::kF32, kF32Tolerance, "bf16"},
          {KvDType::kBF16, AttentionArithmetic::kBF16, kBf16Tolerance, "bf16 products"},
          {KvDType::kInt8, AttentionArithmetic::kF32, kIntTolerance, "int8"},
          {KvDType::kInt16, AttentionArithmetic::kF32, kInt16Tolerance, "int16"}};
}

AttentionWorld::AttentionWorld(const WorldOptions& options, const std::vector<WorldSeq>& seqs)
    : options_(options) {
  int32_t blocks = 3, rows = 0;  // some stay free
  for (const WorldSeq& seq : seqs) {
    blocks += BlocksFor(seq.kv_len) + BlocksFor(seq.cross_len);
    rows += seq.rows;
  }
  CreatePool(blocks);
  q_.resize(static_cast<size_t>(rows) * width());
  int32_t row = 0;
  for (const WorldSeq& seq : seqs) {
    seqs_.push_back({.row_begin = row,
                     .row_count = seq.rows,
                     .kv_len = seq.kv_len,
                     .table_begin = static_cast<int32_t>(block_ids_.size()),
                     .logits_begin = 0,
                     .logits_count = 0,
                     .window_tokens = seq.window_tokens,
                     .sink_tokens = seq.sink_tokens});
    row += seq.rows;
    AddTable(seq);
    AddFacts(seq);
    FillQueries(seq);
    Append(seq, block_ids_.data() + seqs_.back().table_begin, false);
    Append(seq, cross_block_ids_.data() + seq_facts_.back().cross_table_begin, true);
  }
  batch_.seqs = seqs_;
  batch_.block_ids = block_ids_;
  facts_ = {.seqs = seq_facts_, .global_words = global_words_, .cross_block_ids = cross_block_ids_};
}

void AttentionWorld::CreatePool(int32_t blocks) {
  const KvLayout layout =
      KvLayout::Make(options_.dtype, options_.shape.num_kv_heads, options_.shape.head_dim);
  absl::StatusOr<KvPool> pool = KvPool::Create(layout, 1, blocks);
  CHECK_OK(pool.status());
  pool_ = *std::move(pool);
  if (options_.fill != 0.0f) {
    const size_t count = pool_.bytes() / 4;
    uint32_t bits;
    std::memcpy(&bits, &options_.fill, sizeof(bits));
    if (options_.dtype != KvDType::kF32) bits = (bits >> 16) | (bits & 0xffff0000u);
    uint32_t* words = reinterpret_cast<uint32_t*>(pool_.Layer(0).data);
    std::fill_n(words, std::min(count, layout.block_bytes() * blocks / 4), bits);
  }
  std::vector<int32_t> ids(blocks);
  std::iota(ids.begin(), ids.end(), 0);
  if (options_.shuffle != 0) std::shuffle(ids.begin(), ids.end(), std::mt19937(options_.shuffle));
  for (int32_t id : ids) free_blocks_.push_back(BlockId{id});
}

void AttentionWorld::AddTable(const WorldSeq& seq) {
  for (int32_t block = 0; block < BlocksFor(seq.kv_len); ++block) {
    const bool shared = options_.share_blocks && (block + 1) * kBlockTokens <= seq.shared_tokens;
    if (!shared) {
      block_ids_.push_back(NextBlock());
      continue;
    }
    auto [found, fresh] = shared_blocks_.try_emplace({seq.shared_id, block}, BlockId{0});
    if (fresh) found->second = NextBlock();
    block_ids_.push_back(found->second);
  }
}

void AttentionWorld::AddFacts(const WorldSeq& seq) {
  SequenceFacts facts;
  facts.prefix = seq.prefix;
  facts.cross_len = seq.cross_len;
  facts.cross_table_begin = static_cast<int32_t>(cross_block_ids_.size());
  for (int32_t block = 0; block < BlocksFor(seq.cross_len); ++block)
    cross_block_ids_.push_back(NextBlock());
  if (!seq.globals.empty()) {
    facts.global_begin = static_cast<int32_t>(global_words_.size());
    global_words_.resize(global_words_.size() + BlocksFor(seq.kv_len));
    for (int32_t token : seq.globals)
      global_words_[facts.global_begin + token / 64] |= uint64_t{1} << (token % 64);
  }
  seq_facts_.push_back(facts);
}

void AttentionWorld::TokenData(int32_t id, int32_t token, float* q, float* k, float* v) {
  const int32_t kv_width = options_.shape.num_kv_heads * options_.shape.head_dim;
  const uint64_t key = static_cast<uint64_t>(id) * 1000003 + static_cast<uint64_t>(token);
  for (int32_t i = 0; i < kv_width; ++i) {
    k[i] = 3 * Noise(key, i);
    v[i] = Noise(key, 100000 + i);
  }
  for (int32_t i = 0; i < width(); ++i) q[i] = 3 * Noise(key, 200000 + i);
  if (options_.edit) options_.edit(id, token, q, k, v);
}

void AttentionWorld::FillQueries(const WorldSeq& seq) {
  std::vector<float> k(options_.shape.num_kv_heads * options_.shape.head_dim), v(k.size());
  for (int32_t row = 0; row < seq.rows; ++row) {
    float* q = q_.data() + static_cast<int64_t>(seqs_.back().row_begin + row) * width();
    TokenData(seq.id, seq.kv_len - seq.rows + row, q, k.data(), v.data());
  }
}

void AttentionWorld::Append(const WorldSeq& seq, const BlockId* table, bool encoder) {
  const int32_t kv_width = options_.shape.num_kv_heads * options_.shape.head_dim;
  const int32_t tokens = encoder ? seq.cross_len : seq.kv_len;
  std::vector<float> k(static_cast<size_t>(tokens) * kv_width), v(k.size()), q(width());
  std::vector<KvSlot> slots;
  for (int32_t t = 0; t < tokens; ++t) {
    const int32_t id = encoder                 ? seq.id + kEncoderIds
                       : t < seq.shared_tokens ? seq.shared_id
                                               : seq.id;
    float* v_row = v.data() + static_cast<size_t>(t) * kv_width;
    TokenData(id, t, q.data(), k.data() + static_cast<size_t>(t) * kv_width, v_row);
    for (int32_t i = 0; i < kv_width; ++i) max_abs_v_ = std::max(max_abs_v_, std::abs(v_row[i]));
    slots.push_back(
        KvSlot{static_cast<int32_t>(table[t / kBlockTokens]) * kBlockTokens + t % kBlockTokens});
  }
  if (tokens == 0) return;
  AppendKv(pool_.Layer(0), {.slots = slots, .k = k.data(), .v = v.data(), .stride = kv_width},
           {.row_begin = 0,
            .row_end = tokens,
            .head_begin = 0,
            .head_end = options_.shape.num_kv_heads});
}

AttentionOptions AttentionWorld::KernelOptions() const {
  AttentionOptions options;
  options.shape = options_.shape;
  options.kv_dtype = options_.dtype;
  options.arithmetic = options_.arithmetic;
  options.max_rows = static_cast<int32_t>(q_.size()) / width();
  options.max_seqs = static_cast<int32_t>(seqs_.size());
  for (const SeqSpan& seq : seqs_)
    options.context_tokens = std::max(options.context_tokens, seq.kv_len);
  for (const SequenceFacts& seq : seq_facts_)
    options.cross_tokens = std::max(options.cross_tokens, seq.cross_len);
  options.spec = options_.spec;
  options.num_layers = std::max(1, static_cast<int32_t>(options_.spec.layers.size()));
  return options;
}

std::vector<float> AttentionWorld::Run(const AttentionOptions& options) const {
  absl::StatusOr<std::unique_ptr<AttentionKernel>> kernel = AttentionKernel::Create(options);
  CHECK_OK(kernel.status());
  (*kernel)->Plan(batch_, facts_);
  return RunWith(**kernel, options.workers);
}

std::vector<float> AttentionWorld::RunWith(AttentionKernel& kernel, int32_t workers,
                                           int32_t layer) const {
  std::vector<float> out(q_.size(), kNaN);
  const AttentionIo io = {
      .q = q_.data(), .q_stride = width(), .out = out.data(), .out_stride = width()};
  std::vector<std::thread> threads;
  for (int32_t worker = 1; worker < workers; ++worker) {
    threads.emplace_back([&, worker] { kernel.Run(worker, layer, pool_.Layer(0), io); });
  }
  kernel.Run(0, layer, pool_.Layer(0), io);
  for (std::thread& thread : threads) thread.join();
  return out;
}

AttentionReferenceInput AttentionWorld::ReferenceInput(int32_t layer) const {
  return {.shape = options_.shape,
          .spec = options_.spec,
          .layer = layer,
          .batch = batch_,
          .facts = facts_};
}

std::vector<float> AttentionWorld::Reference(int32_t layer) const {
  std::vector<float> out(q_.size(), kNaN);
  AttentionReference(
      ReferenceInput(layer), pool_.Layer(0),
      {.q = q_.data(), .q_stride = width(), .out = out.data(), .out_stride = width()});
  return out;
}

std::vector<float> AttentionWorld::RowsOf(const std::vector<float>& out, int32_t i) const {
  const auto begin = out.begin() + static_cast<int64_t>(seqs_[i].row_begin) * width();
  return {begin, begin + static_cast<int64_t>(seqs_[i].row_count) * width()};
}

}  // namespace quire
