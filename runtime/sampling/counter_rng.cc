#include "runtime/sampling/counter_rng.h"

namespace quire {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

double UniformAt(uint64_t seed, int32_t output_index, int32_t position) {
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(output_index), static_cast<uint32_t>(position), 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t word = bits[0] | (uint64_t{bits[1]} << 32);
  return static_cast<double>(word >> 11) * 0x1p-53;
}

}  // namespace quire
