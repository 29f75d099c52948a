// Batch invariance for sequences that share physical prefix blocks, by hand-built steps: the same
// bits whether a prefix lies in one place or in one per sequence, whoever reads it in the same
// step. Prefixes are longer than a chunk of attention (256 tokens), so cascade attention has
// something to read once.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "absl/log/check.h"
#include "runtime/sampling/sampler.h"
#include "tests/property/invariance.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

constexpr int32_t kSequences = 32;
constexpr int32_t kPrefixTokens[] = {0, 320, 576};  // whole blocks; sequence i has kind i % 3
constexpr int32_t kPrefixChunk = 192;
constexpr int32_t kNewTokens = 5;
constexpr int32_t kMaxRows = 512;
constexpr int32_t kOwnBlocks = 11;  // of a sequence: 576 tokens and what follows

struct PrefixShape {
  int32_t batch = 1;  // sequences that run together
  bool shared = false;
  int32_t threads = 1;
  bool cascade = true;
};

struct PrefixedSequence {
  SequenceId id;
  SamplingParams params;
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;
  int32_t computed = 0, start_step = 0, drawn = 0;

  int32_t uncomputed() const { return static_cast<int32_t>(tokens.size()) - computed; }
};

std::vector<TokenId> SeededTokens(uint64_t seed, int32_t count, int32_t vocab_size) {
  TestRandom random(seed);
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(TokenId{random.Between(0, vocab_size - 1)});
  return tokens;
}

// The arrays of a step.
class HandBatch {
 public:
  // The next `count` tokens; logits of the last one if it is the last known.
  void Add(PrefixedSequence& s, int32_t count) {
    const bool draws = count == s.uncomputed();
    seqs_.push_back({.row_begin = static_cast<int32_t>(tokens_.size()),
                     .row_count = count,
                     .kv_len = s.computed + count,
                     .table_begin = static_cast<int32_t>(blocks_.size()),
                     .logits_begin = logits_,
                     .logits_count = draws ? 1 : 0});
    logits_ += draws ? 1 : 0;
    for (int32_t i = 0; i < count; ++i, ++s.computed) {
      const auto position = static_cast<size_t>(s.computed);
      tokens_.push_back(s.tokens[position]);
      positions_.push_back(s.computed);
      const auto block = static_cast<int32_t>(s.blocks[position / kBlockTokens]);
      slots_.push_back(KvSlot{block * kBlockTokens + s.computed % kBlockTokens});
    }
    blocks_.insert(blocks_.end(), s.blocks.begin(), s.blocks.begin() + BlocksFor(s.computed));
  }
  StepBatch Get() const {
    return {.tokens = tokens_,
            .positions = positions_,
            .slots = slots_,
            .block_ids = blocks_,
            .seqs = seqs_,
            .copies = {},
            .logits_rows = logits_};
  }

 private:
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<KvSlot> slots_;
  std::vector<BlockId> blocks_;
  std::vector<SeqSpan> seqs_;
  int32_t logits_ = 0;
};

class SharedPrefix : public testing::TestWithParam<KvDType> {
 protected:
  SharedPrefix() : model_(MakeTinyModel({.context_tokens = 1024})) {}

  SeenOutputs Run(const PrefixShape& shape);

 private:
  std::vector<PrefixedSequence> MakeSequences(bool shared) const;
  void ComputePrefixes(std::vector<PrefixedSequence>& sequences, bool shared,
                       CpuModelRunner& runner) const;
  void Step(std::span<PrefixedSequence> together, int32_t step, CpuModelRunner& runner,
            Sampler& sampler, SeenOutputs& seen) const;

  const TinyModel model_;
};

std::vector<PrefixedSequence> SharedPrefix::MakeSequences(bool shared) const {
  const int32_t vocab = model_.config.vocab_size;
  std::vector<PrefixedSequence> sequences;
  for (int32_t i = 0; i < kSequences; ++i) {
    PrefixedSequence& s = sequences.emplace_back();
    s.id = {RequestId{static_cast<uint64_t>(i) + 1}, 0};
    s.params = {.temperature = i % 2 == 0 ? 0.0f : 0.9f,
                .seed = 77 + static_cast<uint64_t>(i),
                .logprobs = true,
                .top_logprobs = 2};
    const int32_t kind = i % 3;
    s.tokens = SeededTokens(static_cast<uint64_t>(kind), kPrefixTokens[kind], vocab);
    const std::vector<TokenId> own = SeededTokens(100 + static_cast<uint64_t>(i), 2 + i, vocab);
    s.tokens.insert(s.tokens.end(), own.begin(), own.end());
    s.start_step = i % 4;  // so that prompts and decoding meet in a step
    for (int32_t b = 0; b < kOwnBlocks; ++b) s.blocks.push_back(BlockId{i * kOwnBlocks + b});
    if (!shared || i < 3) continue;
    std::copy_n(sequences[static_cast<size_t>(kind)].blocks.begin(),
                kPrefixTokens[kind] / kBlockTokens, s.blocks.begin());
  }
  return sequences;
}

void SharedPrefix::ComputePrefixes(std::vector<PrefixedSequence>& sequences, bool shared,
                                   CpuModelRunner& runner) const {
  for (size_t i = 0; i < sequences.size(); ++i) {
    PrefixedSequence& s = sequences[i];
    const int32_t prefix = kPrefixTokens[i % 3];
    if (shared && i >= 3) s.computed = prefix;
    while (s.computed < prefix) {
      HandBatch batch;
      batch.Add(s, std::min(kPrefixChunk, prefix - s.computed));
      (void)runner.Forward(batch.Get());
    }
  }
}

void SharedPrefix::Step(std::span<PrefixedSequence> together, int32_t step, CpuModelRunner& runner,
                        Sampler& sampler, SeenOutputs& seen) const {
  HandBatch batch;
  std::vector<PrefixedSequence*> order;
  for (const bool prompts : {false, true}) {  // one-row sequences first
    for (PrefixedSequence& s : together) {
      if (step < s.start_step || s.drawn == kNewTokens || (s.drawn == 0) != prompts) continue;
      batch.Add(s, s.uncomputed());
      order.push_back(&s);
    }
  }
  if (order.empty()) return;
  CHECK_LE(batch.Get().tokens.size(), size_t{kMaxRows});
  const StepOutput output = runner.Forward(batch.Get());
  std::vector<SampleSpec> specs;
  for (PrefixedSequence* s : order) {
    specs.push_back({.sequence = s->id,
                     .logits_row = static_cast<int32_t>(specs.size()),
                     .position = s->computed,
                     .params = &s->params,
                     .history = s->tokens,
                     .banned = {},
                     .allowed = {}});
  }
  std::vector<Sampled> drawn(specs.size());
  sampler.Sample(output.logits, specs, drawn);
  for (size_t i = 0; i < order.size(); ++i) {
    CHECK(drawn[i].outcome == SampleOutcome::kToken);
    SeenToken& token = seen[order[i]->id].emplace_back();
    token = {.token = static_cast<int32_t>(drawn[i].token),
             .logprob_bits = std::bit_cast<uint32_t>(drawn[i].logprob),
             .rank = drawn[i].rank,
             .top = {}};
    for (const TopLogprob& top : std::span(drawn[i].top).first(drawn[i].top_count)) {
      token.top.emplace_back(static_cast<int32_t>(top.token), std::bit_cast<uint32_t>(top.logprob));
    }
    order[i]->tokens.push_back(drawn[i].token);
    ++order[i]->drawn;
  }
}

SeenOutputs SharedPrefix::Run(const PrefixShape& shape) {
  WorkerPool pool({.threads = shape.threads, .pin = false});
  auto runner = CpuModelRunner::Create(model_.config, model_.weights,
                                       {.kv_dtype = GetParam(),
                                        .num_blocks = kSequences * kOwnBlocks,
                                        .max_rows = kMaxRows,
                                        .max_seqs = kSequences,
                                        .cascade = shape.cascade,
                                        .pool = &pool});
  CHECK_OK(runner.status());
  Sampler sampler({.vocab_size = model_.config.vocab_size, .pool = &pool});
  std::vector<PrefixedSequence> sequences = MakeSequences(shape.shared);
  ComputePrefixes(sequences, shape.shared, **runner);
  SeenOutputs seen;
  for (int32_t first = 0; first < kSequences; first += shape.batch) {
    const std::span together = std::span(sequences).subspan(
        static_cast<size_t>(first), static_cast<size_t>(std::min(shape.batch, kSequences - first)));
    for (int32_t step = 0; step < kNewTokens + 3; ++step) {
      Step(together, step, **runner, sampler, seen);
    }
  }
  return seen;
}

TEST_P(SharedPrefix, SharedBlocksChangeNoBit) {
  const SeenOutputs plain = Run({});
  ASSERT_EQ(plain.size(), size_t{kSequences});
  for (const auto& [id, tokens] : plain) ASSERT_EQ(tokens.size(), size_t{kNewTokens});
  for (const bool shared : {false, true}) {
    for (const int32_t batch : {1, 2, 7, kSequences}) {
      for (const int32_t threads : {1, 2}) {
        const SeenOutputs seen = Run({.batch = batch, .shared = shared, .threads = threads});
        EXPECT_EQ(Digest(seen), Digest(plain))
            << "batch " << batch << ", shared " << shared << ", threads " << threads << ": "
            << FirstDifference(plain, seen);
      }
    }
  }
  for (const int32_t threads : {1, 2}) {
    const SeenOutputs seen =
        Run({.batch = kSequences, .shared = true, .threads = threads, .cascade = false});
    EXPECT_EQ(Digest(seen), Digest(plain))
        << "no cascade, threads " << threads << ": " << FirstDifference(plain, seen);
  }
}

INSTANTIATE_TEST_SUITE_P(Kv, SharedPrefix,
                         testing::Values(KvDType::kF32, KvDType::kBF16, KvDType::kInt8,
                                         KvDType::kInt16),
                         [](const auto& info) { return KvDTypeName(info.param); });

}  // namespace
}  // namespace quire
