#include "runtime/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

uintptr_t Address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(Arena, StartsOnAHugePageAndRoundsUp) {
  Arena arena = *Arena::Create(3 << 20);
  EXPECT_EQ(arena.size(), size_t{4} << 20);
  EXPECT_EQ(Address(arena.Take(1).data()) % (2 << 20), 0u);
}

TEST(Arena, HandsOutZeroedLinesOneAfterTheOther) {
  Arena arena = *Arena::Create(1000);
  const std::span<std::byte> a = arena.Take(65), b = arena.Take(1);
  EXPECT_EQ(a.size(), 65u);
  EXPECT_EQ(b.data() - a.data(), 128);
  EXPECT_EQ(arena.used(), 192u);
  for (const std::byte v : a) EXPECT_EQ(v, std::byte{0});
  const std::span<float> floats = arena.TakeArray<float>(10);
  EXPECT_EQ(floats.size(), 10u);
  EXPECT_EQ(Address(floats.data()) % 64, 0u);
}

TEST(Arena, CanBeTakenToTheLastByteAndNoFurther) {
  Arena arena = *Arena::Create(1);
  const std::span<std::byte> all = arena.Take(arena.size());
  all.back() = std::byte{1};
  EXPECT_EQ(arena.used(), arena.size());
  EXPECT_DEATH(arena.Take(1), "arena of 2097152 bytes");
}

TEST(Arena, KeepsItsMemoryWhenMoved) {
  Arena first = *Arena::Create(4096);
  const std::span<std::byte> bytes = first.Take(16);
  bytes[3] = std::byte{42};
  Arena second = std::move(first);
  EXPECT_EQ(first.size(), 0u);  // NOLINT(bugprone-use-after-move): a moved-from arena is empty
  Arena third;
  third = std::move(second);
  EXPECT_EQ(bytes[3], std::byte{42});
  EXPECT_EQ(third.used(), 64u);
}

TEST(Arena, TouchKeepsContents) {
  Arena arena = *Arena::Create(8 << 20);
  const std::span<std::byte> bytes = arena.Take(8 << 20);
  bytes[4096] = std::byte{7};
  arena.Touch();
  EXPECT_EQ(bytes[4096], std::byte{7});
  EXPECT_EQ(bytes[8192], std::byte{0});
}

TEST(Arena, PartsOfATouchCoverEveryPageOnce) {
  for (const size_t parts : {1, 2, 3, 7}) {
    Arena arena = *Arena::Create(10 << 20);
    const std::span<std::byte> bytes = arena.Take(10 << 20);
    size_t resident = 0;
    for (size_t part = 0; part < parts; ++part) {
      arena.Touch(part, parts);
      std::vector<unsigned char> pages(bytes.size() / 4096);
      ASSERT_EQ(mincore(bytes.data(), bytes.size(), pages.data()), 0);
      const auto now =
          static_cast<size_t>(std::ranges::count_if(pages, [](auto p) { return p & 1; }));
      EXPECT_GE(now, resident);
      resident = now;
    }
    EXPECT_EQ(resident, bytes.size() / 4096);
  }
}

TEST(Arena, SaysHowMuchItCouldNotReserve) {
  const absl::StatusOr<Arena> huge = Arena::Create(size_t{1} << 60);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(huge.status().message().find("1152921504606846976"), absl::string_view::npos)
      << huge.status();
  EXPECT_EQ(Arena::Create(SIZE_MAX).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Arena, MayBeEmpty) {
  Arena arena = *Arena::Create(0);
  EXPECT_EQ(arena.size(), 0u);
  EXPECT_TRUE(arena.Take(0).empty());
  arena.Touch();
}

}  // namespace
}  // namespace quire
