#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/golden/golden_case.h"

// The two committed tiny llamas against transformers' float32 logits of the same files, at every
// position.
namespace quire {
namespace {

struct Difference {
  double largest = 0;   // |ours - reference|
  double relative = 0;  // root mean square of the difference over that of the reference
};

Difference Compare(const std::string& name, const std::string& rows_name, KvDType kv_dtype,
                   int32_t chunk) {
  const nlohmann::json golden = ReadGoldenJson(name + ".json");
  const std::vector<float> reference = ReadF32Rows(rows_name);
  const auto vocab = golden["vocab"].get<size_t>();
  GoldenModel model(GoldenPath(name + ".gguf"), kv_dtype, 2);
  double largest = 0, error = 0, power = 0;
  size_t rows = 0;
  for (const nlohmann::json& c : golden["cases"]) {
    const std::vector<std::vector<float>> ours = model.Logits(TokensOf(c["ids"]), chunk);
    const auto first = c["first_row"].get<size_t>();
    for (size_t r = 0; r < ours.size(); ++r, ++rows) {
      for (size_t i = 0; i < vocab; ++i) {
        const double expected = reference.at((first + r) * vocab + i);
        const double difference = std::abs(ours[r].at(i) - expected);
        largest = std::max(largest, difference);
        error += difference * difference;
        power += expected * expected;
      }
    }
  }
  EXPECT_EQ(rows * vocab, reference.size());
  return {largest, std::sqrt(error / power)};
}

// Logits have a standard deviation of 1.5. In float32 only the order of additions differs.
TEST(TinyLlama, FloatLogitsEqualTheReference) {
  for (const int32_t chunk : {1, 7, 64}) {
    const Difference d = Compare("tiny-f32", "tiny-f32.f32", KvDType::kF32, chunk);
    EXPECT_LE(d.largest, 5e-5) << "chunk " << chunk << ", relative " << d.relative;
  }
}

// bf16 keys and values keep 8 bits, and these random weights amplify what is lost.
TEST(TinyLlama, Bf16CacheStaysCloseToTheReference) {
  for (const int32_t chunk : {1, 64}) {
    const Difference d = Compare("tiny-f32", "tiny-f32.f32", KvDType::kBF16, chunk);
    EXPECT_LE(d.relative, 1e-2) << "chunk " << chunk << ", largest " << d.largest;
  }
}

// int8 keys and values keep 7 bits of the largest element of their head.
TEST(TinyLlama, Int8CacheStaysCloseToTheReference) {
  for (const int32_t chunk : {1, 64}) {
    const Difference d = Compare("tiny-f32", "tiny-f32.f32", KvDType::kInt8, chunk);
    EXPECT_LE(d.relative, 2e-2) << "chunk " << chunk << ", largest " << d.largest;
  }
}

// int16 keys and values keep 11 bits of it: no worse than bf16.
TEST(TinyLlama, Int16CacheStaysCloseToTheReference) {
  for (const int32_t chunk : {1, 64}) {
    const Difference d = Compare("tiny-f32", "tiny-f32.f32", KvDType::kInt16, chunk);
    EXPECT_LE(d.relative, 1e-2) << "chunk " << chunk << ", largest " << d.largest;
  }
}

// Root mean square of a - b over that of b.
double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, power = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (double{a.at(i)} - b[i]) * (double{a.at(i)} - b[i]);
    power += double{b[i]} * b[i];
  }
  return std::sqrt(error / power);
}

// Our int8 activations cost no more than rounding transformers' own activations once, one scale per
// 32 values.
TEST(TinyLlama, QuantisedLogitsAreAsCloseAsInt8ActivationsAllow) {
  const double plain =
      RelativeDistance(ReadF32Rows("tiny-q4-int8.f32"), ReadF32Rows("tiny-q4.f32"));
  EXPECT_LT(plain, 0.05);
  for (const int32_t chunk : {1, 7, 64}) {
    const Difference d = Compare("tiny-q4", "tiny-q4.f32", KvDType::kF32, chunk);
    EXPECT_LE(d.relative, 1.25 * plain) << "chunk " << chunk << ", largest " << d.largest;
  }
}

}  // namespace
}  // namespace quire
