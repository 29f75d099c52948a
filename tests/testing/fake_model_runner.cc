#include "tests/testing/fake_model_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/log/check.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/mix.h"

namespace quire {
namespace {

// Whether some row of the sequence sees a token of the block; the first row sees furthest back.
bool SeesBlock(const SeqSpan& seq, int32_t block) {
  const int32_t first = seq.kv_len - seq.row_count - seq.window_tokens + 1;
  return seq.window_tokens == 0 || block * kBlockTokens < seq.sink_tokens ||
         (block + 1) * kBlockTokens > first;
}

constexpr uint64_t kPoison = 0xdeadu;

}  // namespace

FakeModelRunner::FakeModelRunner(FakeModelOptions options) : options_(std::move(options)) {
  const RunnerLimits& limits = options_.limits;
  const auto slots = static_cast<size_t>(limits.num_blocks) * kBlockTokens;
  slots_.resize(slots);
  notes_.resize(static_cast<size_t>(limits.num_blocks));
  written_in_step_.resize(slots);
  const auto rows = static_cast<size_t>(limits.max_logits_rows);
  logits_.resize(rows * static_cast<size_t>(limits.vocab_size));
  group_max_.resize(rows *
                    static_cast<size_t>((limits.vocab_size + kLogitGroup - 1) / kLogitGroup));
}

uint64_t FakeModelRunner::Extend(uint64_t chain, TokenId token, int32_t position) {
  return Mix(Mix(chain, static_cast<uint64_t>(token)), static_cast<uint64_t>(position));
}

uint64_t FakeModelRunner::Root(int32_t window_tokens, int32_t sink_tokens) {
  return window_tokens == 0 ? kRoot
                            : Mix(kRoot, Mix(static_cast<uint64_t>(window_tokens),
                                             static_cast<uint64_t>(sink_tokens)));
}

float FakeModelRunner::Logit(uint64_t chain, int32_t token) {
  const uint64_t bits = Mix(chain, static_cast<uint64_t>(token)) >> 40;  // 24 bits: exact in f32
  return static_cast<float>(bits) * 0x1p-20f - 8.0f;
}

void FakeModelRunner::Report(const std::string& what) {
  CHECK(!options_.fatal) << "step " << steps_ << ": " << what;
  if (errors_.size() < 16) errors_.push_back(absl::StrCat("step ", steps_, ": ", what));
}

void FakeModelRunner::PoisonBlock(BlockId id) {
  BlockNote& note = notes_[static_cast<size_t>(id)];
  if (note.poisoned) return;
  const auto begin = static_cast<size_t>(id) * kBlockTokens;
  std::fill_n(slots_.begin() + static_cast<ptrdiff_t>(begin), kBlockTokens,
              Slot{-1, kPoison, kPoison});
  note = {.linked = 0, .poisoned = true};
}

StepOutput FakeModelRunner::Forward(const StepBatch& batch) {
  CheckBatch(batch);
  for (const BlockCopy& copy : batch.copies) Copy(copy);
  for (const SeqSpan& seq : batch.seqs) RunSequence(batch, seq);
  ++steps_;
  const auto rows = static_cast<size_t>(batch.logits_rows);
  const std::span<const float> logits = logits_, group_max = group_max_;
  const size_t groups = group_max.size() / static_cast<size_t>(options_.limits.max_logits_rows);
  return {.logits = {.values = logits.first(rows * static_cast<size_t>(options_.limits.vocab_size)),
                     .group_max = group_max.first(rows * groups)}};
}

void FakeModelRunner::CheckBatch(const StepBatch& batch) {
  const RunnerLimits& limits = options_.limits;
  const auto rows = static_cast<int32_t>(batch.tokens.size());
  Require(rows >= 1 && rows <= limits.max_rows, rows, " rows");
  Require(
      batch.positions.size() == batch.tokens.size() && batch.slots.size() == batch.tokens.size(),
      "rows of different counts");
  Require(static_cast<int32_t>(batch.seqs.size()) <= limits.max_seqs, "too many sequences");
  Require(batch.logits_rows <= limits.max_logits_rows, "too many logits rows");
  int32_t next_row = 0, next_logits = 0;
  bool longer = false;
  for (const SeqSpan& seq : batch.seqs) {
    Require(seq.row_begin == next_row && seq.row_count >= 1, "rows of sequences leave a gap");
    Require(seq.logits_begin == next_logits && seq.logits_count <= seq.row_count,
            "logits rows of sequences leave a gap");
    Require(!longer || seq.row_count > 1, "a one-row sequence behind a longer one");
    Require(seq.kv_len <= limits.context_tokens, "beyond the context");
    longer = longer || seq.row_count > 1;
    next_row += seq.row_count;
    next_logits += seq.logits_count;
  }
  Require(next_row == rows && next_logits == batch.logits_rows, "rows that belong to no sequence");
}

void FakeModelRunner::Copy(const BlockCopy& copy) {
  Require(copy.token_count >= 1 && copy.token_count < kBlockTokens && copy.src != copy.dst,
          "copy of a whole block, or onto itself");
  const auto src = static_cast<ptrdiff_t>(copy.src) * kBlockTokens;
  PoisonBlock(copy.dst);
  std::copy_n(slots_.begin() + src, copy.token_count,
              slots_.begin() + static_cast<ptrdiff_t>(copy.dst) * kBlockTokens);
  const int32_t linked = notes_[static_cast<size_t>(copy.src)].linked;
  notes_[static_cast<size_t>(copy.dst)] = {.linked = std::min(linked, copy.token_count)};
}

// The chain after the positions before the sequence's first row, as found in the blocks that this
// row sees.
uint64_t FakeModelRunner::ReadPast(std::span<const BlockId> table, const SeqSpan& seq) {
  const int32_t end = seq.kv_len - seq.row_count;
  uint64_t chain = Root(seq.window_tokens, seq.sink_tokens);
  bool gap = false;
  for (int32_t p = 0; p < end; p += kBlockTokens) {
    if (!SeesBlock(seq, p / kBlockTokens)) {
      gap = true;
      continue;
    }
    const auto block = static_cast<int32_t>(table[static_cast<size_t>(p / kBlockTokens)]);
    const int32_t count = std::min(kBlockTokens, end - p);
    // Rows of a step may be computed in any order, so nobody depends on another's.
    Require(notes_[static_cast<size_t>(block)].row_step != steps_ + 1, "block ", block,
            " is read in the step that fills it");
    const Slot* first = &slots_[static_cast<size_t>(block) * kBlockTokens];
    if (std::exchange(gap, false)) chain = first->parent;
    if (notes_[static_cast<size_t>(block)].linked >= count && first->position == p &&
        first->parent == chain) {
      chain = first[count - 1].chain;
    } else {
      chain = ReadSlots(block, p, count, chain);
    }
  }
  return chain;
}

// The same, slot by slot, to say what is wrong.
uint64_t FakeModelRunner::ReadSlots(int32_t block, int32_t position, int32_t count,
                                    uint64_t chain) {
  for (int32_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[static_cast<size_t>(block * kBlockTokens + i)];
    Require(slot.position == position + i && slot.parent == chain, "position ", position + i,
            " read from block ", block, " that holds position ", slot.position,
            slot.position == position + i ? " of other tokens" : "");
    chain = slot.chain;  // what was found, so that a mistake shows in the output as well
  }
  return chain;
}

void FakeModelRunner::WriteSlot(size_t slot, const Slot& value) {
  BlockNote& note = notes_[slot / kBlockTokens];
  const auto offset = static_cast<int32_t>(slot % kBlockTokens);
  note.poisoned = false;
  note.row_step = steps_ + 1;
  note.linked = std::min(note.linked, offset);
  const bool follows = offset == 0 || (slots_[slot - 1].position + 1 == value.position &&
                                       slots_[slot - 1].chain == value.parent);
  if (note.linked == offset && follows) note.linked = offset + 1;
  slots_[slot] = value;
}

void FakeModelRunner::RunSequence(const StepBatch& batch, const SeqSpan& seq) {
  const auto blocks = static_cast<size_t>(BlocksFor(seq.kv_len));
  const std::span<const BlockId> table =
      batch.block_ids.subspan(static_cast<size_t>(seq.table_begin), blocks);
  for (size_t i = 0; i < table.size(); ++i) {
    const auto block = static_cast<int32_t>(table[i]);
    if (!SeesBlock(seq, static_cast<int32_t>(i))) {
      Require(table[i] == BlockId::kNone, "a block that no row sees");
      continue;
    }
    if (!Require(block >= 0 && block < options_.limits.num_blocks, "block outside the pool"))
      return;
  }
  const int32_t begin = seq.kv_len - seq.row_count;
  uint64_t chain = ReadPast(table, seq);
  for (int32_t i = 0; i < seq.row_count; ++i) {
    const auto row = static_cast<size_t>(seq.row_begin + i);
    const int32_t position = begin + i;
    const auto block = static_cast<int32_t>(table[static_cast<size_t>(position / kBlockTokens)]);
    const auto slot = static_cast<size_t>(batch.slots[row]);
    Require(batch.positions[row] == position, "row of position ", batch.positions[row], " at ",
            position);
    if (!Require(slot == static_cast<size_t>(block * kBlockTokens + position % kBlockTokens),
                 "slot is not the block table's")) {
      return;
    }
    Require(std::exchange(written_in_step_[slot], steps_ + 1) != steps_ + 1,
            "two writers of a slot");
    const uint64_t parent = chain;
    chain = Extend(parent, batch.tokens[row], position);
    WriteSlot(slot, {position, parent, chain});
    const int32_t logits_row = i - (seq.row_count - seq.logits_count);
    if (logits_row >= 0) {
      WriteLogits(seq.logits_begin + logits_row, {steps_, batch.tokens[row], position}, chain);
    }
  }
}

void FakeModelRunner::WriteLogits(int32_t row, const FakeRow& at, uint64_t chain) {
  const int32_t vocab = options_.limits.vocab_size;
  const std::span<float> out = std::span<float>(logits_).subspan(
      static_cast<size_t>(row) * static_cast<size_t>(vocab), static_cast<size_t>(vocab));
  for (int32_t v = 0; v < vocab; ++v) out[static_cast<size_t>(v)] = Logit(chain, v);
  const auto scripted = static_cast<size_t>(at.position);
  if (scripted < options_.script.size()) out[static_cast<size_t>(options_.script[scripted])] = 1e4f;
  if (options_.nan_row && options_.nan_row(at)) {
    std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
  }
  const int32_t groups = (vocab + kLogitGroup - 1) / kLogitGroup;
  for (int32_t g = 0; g < groups; ++g) {
    float best = -std::numeric_limits<float>::infinity();
    for (int32_t v = g * kLogitGroup; v < std::min(vocab, (g + 1) * kLogitGroup); ++v) {
      const float x = out[static_cast<size_t>(v)];
      best = x > best || std::isnan(x) ? x : best;
      if (std::isnan(best)) break;
    }
    group_max_[static_cast<size_t>(row * groups + g)] = best;
  }
}

}  // namespace quire
