// Sequences that share leading blocks: what is grouped, that it changes no bit, and what is read.
#include "runtime/kernels/attention_cascade.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/kernels/attention_plan.h"
#include "tests/runtime/kernels/attention_specs.h"
#include "tests/runtime/kernels/attention_world.h"
#include "tests/testing/count_allocations.h"

namespace quire {
namespace {

constexpr AttentionShape kShape = Shape(6, 2, 64);

// `count` sequences that share `shared` tokens and differ in length.
std::vector<WorldSeq> Sharing(int32_t count, int32_t shared, int32_t rows = 1) {
  std::vector<WorldSeq> seqs;
  for (int32_t i = 0; i < count; ++i) {
    seqs.push_back({.id = i + 1,
                    .kv_len = shared + rows + 37 * i % 400,
                    .rows = rows,
                    .globals = {3, 300},
                    .shared_id = 500,
                    .shared_tokens = shared});
  }
  return seqs;
}

std::vector<float> RunCascade(const AttentionWorld& world, bool cascade, int32_t workers = 1,
                              bool split = true) {
  AttentionOptions options = world.KernelOptions();
  options.cascade = cascade;
  options.workers = workers;
  options.split_long_items = split;
  return world.Run(options);
}

int64_t KvBytes(const AttentionWorld& world, bool cascade) {
  AttentionOptions options = world.KernelOptions();
  options.cascade = cascade;
  auto kernel = AttentionKernel::Create(options);
  (*kernel)->Plan(world.batch(), world.facts());
  return (*kernel)->planned_kv_bytes();
}

int64_t Macs(const AttentionWorld& world, bool cascade) {
  AttentionOptions options = world.KernelOptions();
  options.cascade = cascade;
  auto kernel = AttentionKernel::Create(options);
  (*kernel)->Plan(world.batch(), world.facts());
  return (*kernel)->planned_macs();
}

// Chunks per group and members, for sequences given by their leading chunks' names.
std::vector<std::string> Groups(const std::vector<std::string>& sequences) {
  std::vector<BlockId> blocks;
  std::vector<SeqSpan> seqs;
  for (const std::string& chunks : sequences) {
    seqs.push_back({.row_begin = static_cast<int32_t>(seqs.size()),
                    .row_count = 1,
                    .kv_len = static_cast<int32_t>(chunks.size()) * 256 + 1,
                    .table_begin = static_cast<int32_t>(blocks.size()),
                    .logits_begin = 0,
                    .logits_count = 0});
    for (size_t i = 0; i < chunks.size(); ++i) {
      for (int32_t b = 0; b < 4; ++b) blocks.push_back(BlockId{chunks[i] * 4 + b});
    }
    blocks.push_back(BlockId{10000 + static_cast<int32_t>(seqs.size())});
  }
  StepBatch batch;
  batch.seqs = seqs;
  batch.block_ids = blocks;
  AttentionCascade cascade(static_cast<int32_t>(seqs.size()), 16);
  cascade.Build(batch);
  std::vector<std::string> result;
  for (const CascadeGroup& group : cascade.groups()) {
    std::vector<int32_t> members(
        cascade.members().begin() + group.member_begin,
        cascade.members().begin() + group.member_begin + group.member_count);
    std::sort(members.begin(), members.end());
    std::string text = absl::StrCat(group.chunks, ":");
    for (int32_t member : members) absl::StrAppend(&text, " ", member);
    result.push_back(text);
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(AttentionCascade, GroupsSequencesByTheirCommonChunks) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Groups({"A", "B", "C"}), Strings());
  EXPECT_EQ(Groups({"A", "", "A"}), Strings{"1: 0 2"});
  EXPECT_EQ(Groups({"ABC", "ABD", "XBC", "AB"}), Strings{"2: 0 1 3"});
  EXPECT_EQ(Groups({"AB", "XY", "AC", "XY"}), (Strings{"1: 0 2", "2: 1 3"}));
}

TEST(AttentionCascade, PrefersDeepGroupsOverOneShallowWhereTheySaveMore) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Groups({"ABCDE", "AXYZW", "ABCDF", "AXYZV"}), (Strings{"4: 0 2", "4: 1 3"}));
  EXPECT_EQ(Groups({"AB", "AC", "AD", "ADE", "ADE"}), (Strings{"1: 0 1 2 3 4"}));
}

TEST(AttentionCascade, ChangesNoBitOfAnyVariant) {
  std::vector<std::vector<Variant>> models = {{}};
  for (const Variant& variant : AllVariants()) models.push_back({variant});
  models.push_back({Window(300), SinkTokens(4), LearnedSinks()});
  models.push_back({Window(200), Globals(), Alibi(), SoftCap(4)});
  for (const std::vector<Variant>& model : models) {
    std::vector<WorldSeq> seqs = Sharing(20, 512);
    seqs.push_back({.id = 90, .kv_len = 700, .rows = 1, .globals = {1}, .cross_len = 9});
    seqs.push_back({.id = 91, .kv_len = 70, .rows = 30});
    for (WorldSeq& seq : seqs) seq.prefix = 100;
    const AttentionSpec spec = Make(model, kShape);
    const AttentionWorld shared({.shape = kShape, .shuffle = 4, .spec = spec, .share_blocks = true},
                                seqs);
    const AttentionWorld apart({.shape = kShape, .spec = spec}, seqs);
    const std::vector<float> expected = apart.Run();
    const std::string name = model.empty() ? "plain" : model[0].name;
    EXPECT_TRUE(SameBits(RunCascade(shared, false), expected)) << name;
    for (int32_t workers : {1, 2, 3}) {
      for (bool split : {false, true})
        EXPECT_TRUE(SameBits(RunCascade(shared, true, workers, split), expected))
            << name << " " << workers << " " << split;
    }
  }
}

TEST(AttentionCascade, ChangesNoBitForAnyShape) {
  for (KvDType dtype : {KvDType::kF32, KvDType::kBF16, KvDType::kInt8, KvDType::kInt16}) {
    for (int32_t group : {1, 2, 3, 7, 8, 16, 64}) {
      for (int32_t dim : {40, 64, 256}) {
        const AttentionShape shape = Shape(group, 1, dim);
        for (int32_t rows : {1, 4}) {
          const AttentionWorld world({.shape = shape, .dtype = dtype, .share_blocks = true},
                                     Sharing(5, 300, rows));
          EXPECT_TRUE(SameBits(RunCascade(world, true, 2), RunCascade(world, false)))
              << KvDTypeName(dtype) << " group " << group << " dim " << dim << " rows " << rows;
        }
      }
    }
  }
}

// A sequence that ends exactly with the shared chunks has nothing left to do but to write out.
TEST(AttentionCascade, ServesSequencesThatEndAtTheSharedChunk) {
  const std::vector<WorldSeq> seqs = {
      {.id = 1, .kv_len = 256, .rows = 1, .shared_id = 500, .shared_tokens = 256},
      {.id = 2, .kv_len = 257, .rows = 1, .shared_id = 500, .shared_tokens = 256},
      {.id = 3, .kv_len = 258, .rows = 4, .shared_id = 500, .shared_tokens = 256}};
  const AttentionWorld world({.shape = kShape, .share_blocks = true}, seqs);
  for (int32_t workers : {1, 2})
    EXPECT_TRUE(SameBits(RunCascade(world, true, workers), RunCascade(world, false)));
  // The third's first row does not see all of the chunk: it stays out.
  const int64_t tile_bytes = 2 * 2 * 64 * 64 * 2;
  EXPECT_EQ(KvBytes(world, true), (4 + 0 + 1 + 5) * tile_bytes);
}

TEST(AttentionCascade, LongSharedPrefixesAreSplitOverWorkers) {
  const AttentionWorld world({.shape = Shape(3, 1, 64), .share_blocks = true}, Sharing(6, 4096));
  const std::vector<float> expected = RunCascade(world, false);
  for (int32_t workers : {2, 3, 4})
    EXPECT_TRUE(SameBits(RunCascade(world, true, workers), expected)) << workers;
}

TEST(AttentionCascade, CountsSharedTilesOncePerItem) {
  const AttentionWorld world({.shape = kShape, .share_blocks = true}, Sharing(16, 1024));
  const int64_t tile_bytes = 2 * 2 * 64 * 64 * 2;
  int64_t tails = 0;
  for (const SeqSpan& seq : world.batch().seqs) tails += BlocksFor(seq.kv_len) - 16;
  EXPECT_EQ(KvBytes(world, false), (16 * 16 + tails) * tile_bytes);
  EXPECT_EQ(KvBytes(world, true), (16 + tails) * tile_bytes);
  EXPECT_EQ(Macs(world, true), Macs(world, false));
}

TEST(AttentionCascade, OneKernelServesStepsWithAndWithoutSharing) {
  const AttentionWorld shared({.shape = kShape, .share_blocks = true}, Sharing(9, 512)),
      apart({.shape = kShape}, Sharing(4, 300));
  AttentionOptions options = shared.KernelOptions();
  options.num_layers = 3;
  options.workers = 2;
  auto kernel = AttentionKernel::Create(options);
  ASSERT_TRUE(kernel.ok());
  for (int32_t step = 0; step < 4; ++step) {
    const AttentionWorld& world = step % 2 == 0 ? shared : apart;
    (*kernel)->Plan(world.batch());
    for (int32_t layer : {2, 0, 1})
      EXPECT_TRUE(SameBits(world.RunWith(**kernel, 2, layer), RunCascade(world, false)));
  }
}

// Nobody waits for an item that comes later in the list: no order of workers can block.
TEST(AttentionCascade, SharedItemsComeBeforeThoseThatContinueThem) {
  const AttentionWorld world({.shape = kShape, .share_blocks = true}, Sharing(40, 2048));
  AttentionCascade cascade(40, 16);
  cascade.Build(world.batch());
  for (int32_t workers : {1, 2, 8}) {
    AttentionPlan plan({.tiling = QueryTiling::Make(3),
                        .num_kv_heads = 2,
                        .workers = workers,
                        .max_rows = 40,
                        .max_seqs = 40,
                        .context_tokens = 4096,
                        .state_stride = 64,
                        .split_long_items = true,
                        .max_carried = 40});
    plan.Build({.seqs = world.batch().seqs, .cascade = &cascade});
    std::set<int32_t> made;
    bool makers_over = false;
    int32_t continued = 0;
    for (const AttentionItem& item : plan.items()) {
      if (item.makes_carry) {
        EXPECT_FALSE(makers_over);
        made.insert(item.shared);
      } else {
        makers_over = true;
        EXPECT_TRUE(item.shared < 0 || made.contains(item.shared));
        if (item.shared >= 0 && item.part <= 0) ++continued;
      }
    }
    EXPECT_EQ(made.size(), 3u * 2);
    EXPECT_EQ(continued, 40 * 2);
    EXPECT_EQ(plan.carried().size(), 40u);
  }
}

TEST(AttentionCascade, PlanAllocatesNothing) {
  const AttentionWorld world({.shape = kShape, .share_blocks = true}, Sharing(40, 512));
  AttentionOptions options = world.KernelOptions();
  options.workers = 2;
  auto kernel = AttentionKernel::Create(options);
  ASSERT_TRUE(kernel.ok());
  const AllocationCounter counter;
  (*kernel)->Plan(world.batch(), world.facts());
  EXPECT_EQ(counter.ours(), 0);
}

}  // namespace
}  // namespace quire
