// Rotary position embedding. RopeTable is built at start and immutable, any thread; ApplyRope is
// pure. A step computes the factors of its positions once (FillRow) and every layer applies them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quire {

enum class RopePairs : uint8_t { kInterleaved, kHalfSplit };  // (2i, 2i+1), or (i, i + dims/2)

struct RopeOptions {
  RopePairs pairs = RopePairs::kInterleaved;
  int32_t dims = 0;            // leading dims of a head that rotate; even
  int32_t context_tokens = 0;  // positions below it are valid
  double theta = 10000.0;      // base of the frequencies
  double scale = 1.0;          // positions are divided by it
  std::span<const float>
      factors;  // [dims / 2], each frequency is divided by its own; empty = all 1
};

// Angles of position p = 64 a + b are those of 64 a plus those of b: two small tables of cos and
// sin in double give every position to f32 precision.
class RopeTable {
 public:
  explicit RopeTable(const RopeOptions& options);

  int32_t dims() const { return dims_; }
  RopePairs pairs() const { return pairs_; }

  // out: [2][dims]: the factor of each element, then the signed factor of its partner.
  void FillRow(int32_t position, float* out) const;

 private:
  struct Rotation {
    double cos, sin;
  };
  RopePairs pairs_;
  int32_t dims_;
  std::vector<Rotation> coarse_, fine_;  // [positions / 64][dims / 2], [64][dims / 2]
};

// Rotates `heads` vectors that lie head_dim floats apart, in place, by one row of factors.
struct RopeHeads {
  float* x;
  int32_t heads, head_dim;
};
void ApplyRope(const RopeTable& table, const float* factors, const RopeHeads& heads);

}  // namespace quire
