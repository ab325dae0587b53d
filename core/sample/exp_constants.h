// Every constant of exp_f32, gelu_f32, tanh_f32 and log_f32 (math.h), for the files that write the same operations
// with vector intrinsics.
// Shape   f32 scalars. Includes nothing but <cstdint>: files compiled for one instruction set include this and not
//         math.h, since the linker may pick their copy of math.h's inline functions for the whole program.
// Source  ours: weighted minimax fits (relative error 2^-28.2 for exp, 2^-27.6 for log; for gelu's tail 2^-24, and
//         more where it is small), each coefficient rounded to f32 before the next one is fitted. Cody & Waite 1980 for
//         the split of ln 2.
#pragma once

#include <cstdint>

namespace quire::sample {

inline constexpr float kExpLowest = -104.0f;        // x is clamped to it: the result is +0 from here down
inline constexpr float kExpHighest = 89.0f;         // x is clamped to it: the result is +inf from here up
inline constexpr float kExpLog2E = 0x1.715476p+0f;  // 1 / ln 2
inline constexpr float kExpMagic = 0x1.8p+23f;  // added, it rounds to the nearest integer and leaves it in the low bits
inline constexpr std::uint32_t kExpMagicBits = 0x4b400000u;
inline constexpr float kExpLn2High = 0x1.62e4p-1f;    // 15 significant bits: n * high is exact for |n| < 512
inline constexpr float kExpLn2Low = 0x1.7f7d1cp-20f;  // ln 2 - high
inline constexpr float kExpC2 = 0x1.fffffcp-2f;       // exp(r) = 1 + r + C2 r^2 + ... + C6 r^6 on |r| <= ln 2 / 2
inline constexpr float kExpC3 = 0x1.555492p-3f;
inline constexpr float kExpC4 = 0x1.5558aep-5f;
inline constexpr float kExpC5 = 0x1.12398p-7f;
inline constexpr float kExpC6 = 0x1.6a4f72p-10f;
inline constexpr std::uint32_t kExpBias = 127u;  // of the f32 exponent field
inline constexpr int kExpFractionBits = 23;

// gelu(x) by tanh is x / (1 + exp(-x (linear + cubic x²))): 2 sqrt(2 / pi), and that times 0.044715.
inline constexpr float kGeluLinear = 0x1.988454p+0f;
inline constexpr float kGeluCubic = 0x1.2444f2p-4f;

// gelu(x) is max(0, x) - |x| q, q = exp(-x²/2 + C1 |x| + ... + C9 |x|^9) / 2, the normal distribution's tail. From
// kGeluHighest up the polynomial stays as it is.
inline constexpr float kGeluHighest = 0x1.7p+2f;
inline constexpr float kGeluC1 = -0x1.988492p-1f;
inline constexpr float kGeluC2 = 0x1.74253p-3f;
inline constexpr float kGeluC3 = -0x1.2a557ap-5f;
inline constexpr float kGeluC4 = 0x1.4328ap-8f;
inline constexpr float kGeluC5 = -0x1.c7bb74p-14f;
inline constexpr float kGeluC6 = -0x1.17ed1p-13f;
inline constexpr float kGeluC7 = 0x1.122954p-15f;
inline constexpr float kGeluC8 = -0x1.dc2434p-19f;
inline constexpr float kGeluC9 = 0x1.4cc2ccp-23f;

inline constexpr float kExpm1Highest = 88.0f;  // x is clamped to it
inline constexpr float kTanhHighest = 9.0f;    // tanh of it rounds to 1

inline constexpr float kLogSmallestNormal = 0x1p-126f;
inline constexpr float kLogLift = 0x1p+23f;  // makes a subnormal normal, exactly
inline constexpr int kLogLiftBits = 23;
inline constexpr std::uint32_t kLogLowestFraction = 0x3f2aaaabu;  // bits of 2/3: fractions run over [2/3, 4/3)
inline constexpr float kLogLn2 = 0x1.62e43p-1f;
inline constexpr float kLogC2 = -0x1p-1f;  // log(1 + f) = f + C2 f^2 + ... + C10 f^10 on |f| <= 1/3
inline constexpr float kLogC3 = 0x1.555506p-2f;
inline constexpr float kLogC4 = -0x1.fffef4p-3f;
inline constexpr float kLogC5 = 0x1.99d05ep-3f;
inline constexpr float kLogC6 = -0x1.559d36p-3f;
inline constexpr float kLogC7 = 0x1.1ed424p-3f;
inline constexpr float kLogC8 = -0x1.f32078p-4f;
inline constexpr float kLogC9 = 0x1.1e73ap-3f;
inline constexpr float kLogC10 = -0x1.07e5f4p-3f;

}  // namespace quire::sample
