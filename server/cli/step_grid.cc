#include "server/cli/step_grid.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/sampling/sampler.h"
#include "scheduler/batch_builder.h"
#include "server/cli/bench_runner.h"

namespace quire {
namespace {

struct GridShape {
  int32_t decodes = 0, decode_past = 0;  // sequences of one row; tokens they already have
  int32_t shared_past = 0;               // of decode_past: leading tokens in the same blocks
  int32_t prompt_rows = 0, prompt_past = 0;
  bool prompt_ends = false;  // its last row draws
};

int64_t KvTokens(const GridShape& s) {
  const int64_t each = BlocksFor(s.decode_past + 1) - s.shared_past / kBlockTokens;
  return (each * s.decodes + BlocksFor(s.shared_past) + BlocksFor(s.prompt_past + s.prompt_rows)) *
         kBlockTokens;
}

std::vector<GridShape> Shapes(const GridOptions& options, int32_t context) {
  std::vector<GridShape> all;
  for (const int32_t decodes : {1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64}) {
    for (const int32_t past : {16, 240, 1500}) {
      all.push_back({.decodes = decodes, .decode_past = past});
    }
  }
  for (const int32_t rows : {2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512}) {
    all.push_back({.prompt_rows = rows, .prompt_ends = true});
    for (const int32_t past : {0, 400, 1500}) {
      all.push_back({.prompt_rows = rows, .prompt_past = past});
    }
  }
  for (const int32_t decodes : {1, 4, 16, 48}) {
    for (const int32_t rows : {16, 64, options.step_tokens - decodes}) {
      for (const int32_t past : {0, 700}) {
        all.push_back({.decodes = decodes,
                       .decode_past = 300,
                       .prompt_rows = rows,
                       .prompt_past = past,
                       .prompt_ends = past > 0});
      }
    }
  }
  for (const int32_t decodes : {4, 16, 64}) {
    all.push_back({.decodes = decodes, .decode_past = 800, .shared_past = 768});
    all.push_back({.decodes = decodes, .decode_past = 1700, .shared_past = 1536});
  }
  std::erase_if(all, [&](const GridShape& s) {
    return s.prompt_rows < 0 || s.decodes + s.prompt_rows > options.step_tokens ||
           s.decodes + (s.prompt_rows > 0) > options.max_seqs ||
           KvTokens(s) > options.max_kv_tokens || s.decode_past >= context ||
           s.prompt_past + s.prompt_rows > context || (s.decodes > 0 && s.prompt_rows == 1);
  });
  return all;
}

// Makes plans by hand: no scheduler chooses these shapes.
class Grid {
 public:
  Grid(const LoadedModel& model, WorkerPool* pool, const GridOptions& options,
       std::unique_ptr<CpuModelRunner> runner)
      : runner_(std::move(runner)),
        builder_(runner_->Limits()),
        sampler_({.vocab_size = model.config.vocab_size, .pool = pool}),
        shapes_(runner_->Limits().num_blocks),
        sampled_(static_cast<size_t>(options.max_seqs)) {
    RandomTokens(model.config.vocab_size, 1).FillTo(model.config.context_tokens, &tokens_);
    request_.sampling.temperature = 0;
    request_.stop.ignore_eos = true;
  }

  CostPoint Measure(const GridShape& shape) {
    const StepPlan plan = PlanOf(shape);
    const SteadyClock clock;
    const MonotonicTime begin = clock.Now();
    const StepBatch& batch = builder_.Build(plan);
    const StepOutput out = runner_->Forward(batch);
    sampler_.Sample(out.logits, builder_.specs(),
                    std::span(sampled_).first(builder_.specs().size()));
    const double seconds = SecondsBetween(begin, clock.Now());
    return {.shape = shapes_.Read(batch), .seconds = seconds};
  }

 private:
  void AddSequence(int32_t past, int32_t rows, bool draws, int32_t shared_blocks) {
    const auto blocks = static_cast<size_t>(BlocksFor(past + rows));
    std::vector<BlockId>& table = tables_.emplace_back();
    for (int32_t b = 0; b < shared_blocks; ++b) table.push_back(BlockId{b});
    while (table.size() < blocks) table.push_back(BlockId{next_block_++});
    const std::span<const TokenId> known(tokens_);
    const auto end = static_cast<size_t>(past + rows);
    seqs_.push_back({.id = {.request = RequestId{seqs_.size() + 1}, .output_index = 0},
                     .num_computed = past,
                     .tokens = known.subspan(static_cast<size_t>(past), static_cast<size_t>(rows)),
                     .history = known.first(end),
                     .block_table = table,
                     .num_logits = draws ? 1 : 0,
                     .num_prompt = past + rows,
                     .request = &request_});
    plan_tokens_ += rows;
  }

  StepPlan PlanOf(const GridShape& shape) {
    seqs_.clear();
    tables_.clear();
    tables_.reserve(static_cast<size_t>(shape.decodes) + 1);
    plan_tokens_ = 0;
    const int32_t shared = shape.shared_past / kBlockTokens;
    next_block_ = shared;
    for (int32_t i = 0; i < shape.decodes; ++i) AddSequence(shape.decode_past, 1, true, shared);
    if (shape.prompt_rows > 0) {
      AddSequence(shape.prompt_past, shape.prompt_rows, shape.prompt_ends, 0);
    }
    StepPlan plan;
    plan.seqs = seqs_;
    plan.num_tokens = plan_tokens_;
    return plan;
  }

  std::unique_ptr<CpuModelRunner> runner_;
  BatchBuilder builder_;
  Sampler sampler_;
  ShapeReader shapes_;
  std::vector<Sampled> sampled_;
  std::vector<TokenId> tokens_;
  Request request_;
  std::vector<PlannedSeq> seqs_;
  std::vector<std::vector<BlockId>> tables_;
  int32_t next_block_ = 0, plan_tokens_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<CostPoint>> MeasureSteps(const LoadedModel& model, WorkerPool* pool,
                                                    const GridOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CpuModelRunner> runner,
                   MakeBenchRunner(model, pool,
                                   {.step_tokens = options.step_tokens,
                                    .max_seqs = options.max_seqs,
                                    .num_blocks = options.max_kv_tokens / kBlockTokens,
                                    .kv_dtype = options.kv_dtype}));
  Grid grid(model, pool, options, std::move(runner));
  const std::vector<GridShape> shapes = Shapes(options, model.config.context_tokens);
  // Pass by pass, so that a slow minute of the machine does not fall on one shape alone.
  std::vector<std::vector<double>> seconds(shapes.size());
  std::vector<CostPoint> points(shapes.size());
  for (int32_t pass = 0; pass < options.passes; ++pass) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (pass == 0) (void)grid.Measure(shapes[i]);  // first touches
      points[i] = grid.Measure(shapes[i]);
      seconds[i].push_back(points[i].seconds);
    }
    std::fprintf(stderr, "bench: %zu step shapes, pass %d of %d\n", shapes.size(), pass + 1,
                 options.passes);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::ranges::sort(seconds[i]);
    points[i].seconds = seconds[i][seconds[i].size() / 2];
  }
  return points;
}

}  // namespace quire
