#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/log/check.h"
#include "runtime/tensor/half.h"

namespace quire {
namespace {

constexpr int32_t kBlocks = 8;  // 512 tokens
constexpr int32_t kMaxChunk = 64;

std::string ReadAll(const std::string& name) {
  std::ifstream in(GoldenPath(name), std::ios::binary);
  CHECK(in.good()) << name;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

template <typename T>
std::vector<T> ReadNumbers(const std::string& name) {
  const std::string bytes = ReadAll(name);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

LoadedModel LoadOrDie(const std::string& path, WorkerPool& pool) {
  absl::StatusOr<LoadedModel> model = LoadModel(path, {.pool = &pool, .progress = nullptr});
  CHECK_OK(model.status());
  return *std::move(model);
}

}  // namespace

std::string GoldenPath(const std::string& name) { return QUIRE_GOLDEN_DATA "/" + name; }

nlohmann::json ReadGoldenJson(const std::string& name) {
  return nlohmann::json::parse(ReadAll(name));
}

std::vector<float> ReadF32Rows(const std::string& name) { return ReadNumbers<float>(name); }

std::vector<float> ReadF16Rows(const std::string& name) {
  const std::vector<uint16_t> halves = ReadNumbers<uint16_t>(name);
  std::vector<float> out(halves.size());
  std::ranges::transform(halves, out.begin(), HalfToFloat);
  return out;
}

std::vector<TokenId> TokensOf(const nlohmann::json& ids) {
  std::vector<TokenId> out;
  for (const nlohmann::json& id : ids) out.push_back(TokenId{id.get<int32_t>()});
  return out;
}

GoldenModel::GoldenModel(const std::string& path, KvDType kv_dtype, int32_t threads)
    : pool_({.threads = threads, .pin = false}), loaded_(LoadOrDie(path, pool_)) {
  auto runner = CpuModelRunner::Create(loaded_.config, loaded_.weights,
                                       {.kv_dtype = kv_dtype,
                                        .num_blocks = kBlocks,
                                        .max_rows = kMaxChunk,
                                        .max_seqs = kMaxChunk,
                                        .pool = &pool_});
  CHECK_OK(runner.status());
  runner_ = *std::move(runner);
}

std::vector<std::vector<float>> GoldenModel::Logits(std::span<const TokenId> tokens,
                                                    int32_t chunk) {
  std::vector<std::vector<float>> rows;
  std::vector<BlockId> blocks;  // in descending order: a table need not be sorted
  for (int32_t i = 0; i < kBlocks; ++i) blocks.push_back(BlockId{kBlocks - 1 - i});
  const auto size = static_cast<int32_t>(tokens.size());
  for (int32_t begin = 0; begin < size; begin += chunk) {
    const int32_t count = std::min(chunk, size - begin);
    std::vector<int32_t> positions;
    std::vector<KvSlot> slots;
    for (int32_t p = begin; p < begin + count; ++p) {
      positions.push_back(p);
      const auto block = static_cast<int32_t>(blocks[static_cast<size_t>(p / kBlockTokens)]);
      slots.push_back(KvSlot{block * kBlockTokens + p % kBlockTokens});
    }
    const SeqSpan seq{.row_begin = 0,
                      .row_count = count,
                      .kv_len = begin + count,
                      .table_begin = 0,
                      .logits_begin = 0,
                      .logits_count = count};
    const StepBatch batch{
        .tokens = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
        .positions = positions,
        .slots = slots,
        .block_ids = std::span(blocks).first(static_cast<size_t>(BlocksFor(begin + count))),
        .seqs = {&seq, 1},
        .copies = {},
        .logits_rows = count};
    const std::span<const float> values = runner_->Forward(batch).logits.values;
    const auto vocab = static_cast<size_t>(loaded_.config.vocab_size);
    for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
      const auto row = values.subspan(r * vocab, vocab);
      rows.emplace_back(row.begin(), row.end());
    }
  }
  return rows;
}

}  // namespace quire
