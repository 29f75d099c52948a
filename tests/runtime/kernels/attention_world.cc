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

}  // namespace

AttentionWorld::AttentionWorld(const WorldOptions& options, const std::vector<WorldSeq>& seqs)
    : options_(options) {
  int32_t blocks = 3;  // some stay free
  int32_t rows = 0;
  for (const WorldSeq& seq : seqs) {
    blocks += BlocksFor(seq.kv_len);
    rows += seq.rows;
  }
  const KvLayout layout =
      KvLayout::Make(options.dtype, options.shape.num_kv_heads, options.shape.head_dim);
  absl::StatusOr<KvPool> pool = KvPool::Create(layout, 1, blocks);
  CHECK_OK(pool.status());
  pool_ = *std::move(pool);
  if (options.fill != 0.0f) {
    const size_t count = pool_.bytes() / 4;
    uint32_t bits;
    std::memcpy(&bits, &options.fill, sizeof(bits));
    if (options.dtype == KvDType::kBF16) bits = (bits >> 16) | (bits & 0xffff0000u);
    uint32_t* words = reinterpret_cast<uint32_t*>(pool_.Layer(0).data);
    std::fill_n(words, std::min(count, layout.block_bytes() * blocks / 4), bits);
  }
  std::vector<int32_t> ids(blocks);
  std::iota(ids.begin(), ids.end(), 0);
  if (options.shuffle != 0) std::shuffle(ids.begin(), ids.end(), std::mt19937(options.shuffle));
  for (int32_t id : ids) block_ids_.push_back(BlockId{id});
  q_.resize(static_cast<size_t>(rows) * width());
  int32_t row = 0, table = 0;
  for (const WorldSeq& seq : seqs) {
    seqs_.push_back({.row_begin = row,
                     .row_count = seq.rows,
                     .kv_len = seq.kv_len,
                     .table_begin = table,
                     .logits_begin = 0,
                     .logits_count = 0});
    AppendSequence(seq, table);
    row += seq.rows;
    table += BlocksFor(seq.kv_len);
  }
  batch_.seqs = seqs_;
  batch_.block_ids = block_ids_;
}

void AttentionWorld::AppendSequence(const WorldSeq& seq, int32_t table_begin) {
  const AttentionShape& shape = options_.shape;
  const int32_t kv_width = shape.num_kv_heads * shape.head_dim;
  std::vector<float> k(static_cast<size_t>(seq.kv_len) * kv_width), v(k.size()), q(width());
  std::vector<KvSlot> slots;
  for (int32_t t = 0; t < seq.kv_len; ++t) {
    const uint64_t key = static_cast<uint64_t>(seq.id) * 1000003 + static_cast<uint64_t>(t);
    float* k_row = k.data() + static_cast<size_t>(t) * kv_width;
    float* v_row = v.data() + static_cast<size_t>(t) * kv_width;
    for (int32_t i = 0; i < kv_width; ++i) {
      k_row[i] = 3 * Noise(key, i);
      v_row[i] = Noise(key, 100000 + i);
    }
    for (int32_t i = 0; i < width(); ++i) q[i] = 3 * Noise(key, 200000 + i);
    if (options_.edit) options_.edit(seq.id, t, q.data(), k_row, v_row);
    for (int32_t i = 0; i < kv_width; ++i) max_abs_v_ = std::max(max_abs_v_, std::abs(v_row[i]));
    if (const int32_t row = t - (seq.kv_len - seq.rows); row >= 0) {
      std::copy(q.begin(), q.end(),
                q_.begin() + static_cast<int64_t>(seqs_.back().row_begin + row) * width());
    }
    slots.push_back(
        KvSlot{static_cast<int32_t>(block_ids_[table_begin + t / kBlockTokens]) * kBlockTokens +
               t % kBlockTokens});
  }
  AppendKv(
      pool_.Layer(0), {.slots = slots, .k = k.data(), .v = v.data(), .stride = kv_width},
      {.row_begin = 0, .row_end = seq.kv_len, .head_begin = 0, .head_end = shape.num_kv_heads});
}

AttentionOptions AttentionWorld::KernelOptions() const {
  AttentionOptions options;
  options.shape = options_.shape;
  options.kv_dtype = options_.dtype;
  options.max_rows = static_cast<int32_t>(q_.size()) / width();
  options.max_seqs = static_cast<int32_t>(seqs_.size());
  for (const SeqSpan& seq : seqs_)
    options.context_tokens = std::max(options.context_tokens, seq.kv_len);
  return options;
}

std::vector<float> AttentionWorld::Run(const AttentionOptions& options) const {
  absl::StatusOr<std::unique_ptr<AttentionKernel>> kernel = AttentionKernel::Create(options);
  CHECK_OK(kernel.status());
  (*kernel)->Plan(batch_);
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

std::vector<float> AttentionWorld::Reference() const {
  std::vector<float> out(q_.size(), kNaN);
  AttentionReference(
      options_.shape, batch_, pool_.Layer(0),
      {.q = q_.data(), .q_stride = width(), .out = out.data(), .out_stride = width()});
  return out;
}

std::vector<float> AttentionWorld::RowsOf(const std::vector<float>& out, int32_t i) const {
  const auto begin = out.begin() + static_cast<int64_t>(seqs_[i].row_begin) * width();
  return {begin, begin + static_cast<int64_t>(seqs_[i].row_count) * width()};
}

}  // namespace quire
