#include "scheduler/batch_builder.h"

#include "absl/log/check.h"
#include "scheduler/stop_rules.h"

namespace quire {
namespace {

// 64 stop ids of a client and the model's end tokens; more only costs a growth.
constexpr size_t kEndsPerRequest = 80;

}  // namespace

BatchBuilder::BatchBuilder(const RunnerLimits& limits) : limits_(limits) {
  const auto rows = static_cast<size_t>(limits.max_rows);
  const auto seqs = static_cast<size_t>(limits.max_seqs);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  slots_.reserve(rows);
  // Tables that share blocks, or whose windows have passed some, can be longer in sum than the
  // pool.
  block_ids_.reserve(seqs * static_cast<size_t>(BlocksFor(limits.context_tokens)));
  seqs_.reserve(seqs);
  copies_.reserve(seqs);
  specs_.reserve(static_cast<size_t>(limits.max_logits_rows));
  banned_.reserve(static_cast<size_t>(limits.max_logits_rows) * kEndsPerRequest);
}

const StepBatch& BatchBuilder::Build(const StepPlan& plan) {
  CHECK(plan.num_tokens >= 1 && plan.num_tokens <= limits_.max_rows) << plan.num_tokens;
  CHECK_LE(plan.seqs.size(), static_cast<size_t>(limits_.max_seqs));
  tokens_.clear();
  positions_.clear();
  slots_.clear();
  block_ids_.clear();
  seqs_.clear();
  specs_.clear();
  logits_rows_ = 0;
  for (const PlannedSeq& seq : plan.seqs) {
    AddRows(seq);
    AddSpecs(seq);
  }
  AddBanned(plan);
  copies_.assign(plan.copies.begin(), plan.copies.end());
  CHECK_LE(specs_.size(), static_cast<size_t>(limits_.max_logits_rows));
  batch_ = {.tokens = tokens_,
            .positions = positions_,
            .slots = slots_,
            .block_ids = block_ids_,
            .seqs = seqs_,
            .copies = copies_,
            .logits_rows = logits_rows_};
  return batch_;
}

void BatchBuilder::AddRows(const PlannedSeq& seq) {
  const auto rows = static_cast<int32_t>(seq.tokens.size());
  const int32_t kv_len = seq.num_computed + rows;
  const int32_t blocks = BlocksFor(kv_len);
  CHECK_GE(static_cast<int32_t>(seq.block_table.size()), blocks);
  seqs_.push_back({.row_begin = static_cast<int32_t>(tokens_.size()),
                   .row_count = rows,
                   .kv_len = kv_len,
                   .table_begin = static_cast<int32_t>(block_ids_.size()),
                   .logits_begin = logits_rows_,
                   .logits_count = seq.num_logits,
                   .window_tokens = seq.request->kv.window_tokens,
                   .sink_tokens = seq.request->kv.sink_tokens});
  tokens_.insert(tokens_.end(), seq.tokens.begin(), seq.tokens.end());
  block_ids_.insert(block_ids_.end(), seq.block_table.begin(), seq.block_table.begin() + blocks);
  for (int32_t position = seq.num_computed; position < kv_len; ++position) {
    positions_.push_back(position);
    const auto block = static_cast<int32_t>(seq.block_table[position / kBlockTokens]);
    slots_.push_back(KvSlot{block * kBlockTokens + position % kBlockTokens});
  }
}

void BatchBuilder::AddSpecs(const PlannedSeq& seq) {
  const int32_t kv_len = seq.num_computed + static_cast<int32_t>(seq.tokens.size());
  for (int32_t i = 0; i < seq.num_logits * seq.num_draws; ++i) {
    // A row's logits draw the token after it.
    const int32_t row = i / seq.num_draws;
    const int32_t position = kv_len - seq.num_logits + row + 1;
    specs_.push_back({.sequence = {seq.id.request, seq.id.output_index + i % seq.num_draws},
                      .logits_row = logits_rows_ + row,
                      .position = position,
                      .params = &seq.request->sampling,
                      .history = seq.history.first(static_cast<size_t>(position)),
                      .banned = {},
                      .allowed = {}});
  }
  logits_rows_ += seq.num_logits;
}

// In a pass of its own, since spans into banned_ may only be taken once it has stopped growing.
void BatchBuilder::AddBanned(const StepPlan& plan) {
  const auto for_each = [&](auto&& visit) {
    size_t spec = 0;
    for (const PlannedSeq& seq : plan.seqs) {
      for (int32_t i = 0; i < seq.num_logits * seq.num_draws; ++i, ++spec) {
        const StopRules& rules = seq.request->stop;
        if (EndsAreBanned(rules, specs_[spec].position - seq.num_prompt))
          visit(rules, specs_[spec]);
      }
    }
  };
  banned_.clear();
  for_each([&](const StopRules& rules, SampleSpec&) { AppendEnds(rules, banned_); });
  size_t begin = 0;
  for_each([&](const StopRules& rules, SampleSpec& spec) {
    const size_t count = rules.eos_ids.size() + rules.stop_ids.size();
    spec.banned = std::span<const TokenId>(banned_).subspan(begin, count);
    begin += count;
  });
}

}  // namespace quire
