#include "scheduler/block_pool.h"

#include <gtest/gtest.h>

#include "scheduler/block_table.h"

namespace quire {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(3);
  EXPECT_EQ(pool.Allocate(), BlockId{0});
  EXPECT_EQ(pool.Allocate(), BlockId{1});
  EXPECT_EQ(pool.Allocate(), BlockId{2});
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_used(), 3);
  pool.CheckInvariants();
}

TEST(BlockPool, ReusesTheLeastRecentlyFreedFirst) {
  BlockPool pool(3);
  for (int i = 0; i < 3; ++i) pool.Allocate();
  pool.Release(BlockId{1});
  pool.Release(BlockId{0});
  pool.Release(BlockId{2});
  EXPECT_EQ(pool.Allocate(), BlockId{1});
  EXPECT_EQ(pool.Allocate(), BlockId{0});
  EXPECT_EQ(pool.Allocate(), BlockId{2});
}

TEST(BlockPool, FreesABlockWithItsLastHolder) {
  BlockPool pool(1);
  const BlockId id = pool.Allocate();
  pool.AddRef(id);
  pool.Release(id);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.ref_count(id), 1);
  pool.Release(id);
  EXPECT_EQ(pool.num_free(), 1);
  pool.CheckInvariants();
}

TEST(BlockPool, AFreeBlockCanBeHeldAgain) {
  BlockPool pool(3);
  pool.AddRef(BlockId{1});
  EXPECT_EQ(pool.num_free(), 2);
  pool.CheckInvariants();
  EXPECT_EQ(pool.Allocate(), BlockId{0});
  EXPECT_EQ(pool.Allocate(), BlockId{2});
}

TEST(BlockPool, AFindableBlockWaitsInAListOfItsOwn) {
  BlockPool pool(3);
  const BlockId a = pool.Allocate(), b = pool.Allocate();
  pool.SetFindable(a, true);
  EXPECT_EQ(pool.num_cached(), 0) << "it is held";
  pool.Release(b);
  pool.Release(a);
  pool.SetFindable(b, true);
  pool.CheckInvariants();
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.num_cached(), 2);
  EXPECT_EQ(pool.num_available(), 3);
  EXPECT_EQ(pool.OldestCached(), a);
  pool.AddRef(a);
  pool.Release(a);
  EXPECT_EQ(pool.OldestCached(), b) << "a was used since";
  pool.SetFindable(b, false);
  EXPECT_EQ(pool.num_free(), 2);
  pool.CheckInvariants();
}

TEST(BlockPoolDeathTest, RefusesADoubleFreeAndNoBlock) {
  BlockPool pool(2);
  const BlockId id = pool.Allocate();
  pool.Release(id);
  EXPECT_DEATH(pool.Release(id), "freed twice");
  EXPECT_DEATH(pool.Release(BlockId::kNone), "block -1");
  EXPECT_DEATH(pool.Release(BlockId{2}), "block 2");
}

TEST(BlockTable, TakesWhatItLacksAndGivesAllBack) {
  BlockPool pool(4);
  {
    BlockTable table(pool, 256);
    EXPECT_EQ(table.Missing(64), 1);
    EXPECT_EQ(table.Missing(65), 2);
    table.Grow(65);
    EXPECT_EQ(table.size(), 2);
    EXPECT_EQ(table.Missing(128), 0);
    table.Grow(128);
    EXPECT_EQ(table.size(), 2);
    BlockTable moved(std::move(table));
    EXPECT_EQ(moved.size(), 2);
    EXPECT_EQ(pool.num_used(), 2);
  }
  EXPECT_EQ(pool.num_used(), 0);
  pool.CheckInvariants();
}

TEST(BlockTable, ReleasesItsBeginningLast) {
  BlockPool pool(3);
  BlockTable table(pool, 192);
  table.Grow(192);
  table.Release();
  EXPECT_EQ(pool.Allocate(), BlockId{2});
  EXPECT_EQ(pool.Allocate(), BlockId{1});
  EXPECT_EQ(pool.Allocate(), BlockId{0});
}

}  // namespace
}  // namespace quire
