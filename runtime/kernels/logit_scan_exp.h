// Constants of e(x) in logit_scan.h, shared by its plain and its vector form.
#pragma once

namespace quire::scan {

inline constexpr float kLowest = -87.0f;  // smaller arguments give 0
inline constexpr float kLog2e = 1.44269504f;
// 1.5 * 2^23: adding and subtracting it rounds to an integer.
inline constexpr float kRound = 12582912.0f;
inline constexpr float kLn2High = 0.693359375f;  // 9 bits: times an integer up to 2^15 it is exact
inline constexpr float kLn2Low = -2.12194440e-4f;
// exp(r) = 1 + r + r^2 * (c0 + c1 r + ...) for |r| <= ln(2) / 2, highest power first.
inline constexpr float kPoly[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                  4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

}  // namespace quire::scan
