#include "core/model/rope/rope.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/model/rope/rope_math.h"

namespace quire::model {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

float f32(double value) { return static_cast<float>(value); }

// theta^(2i/D): exponent and base in f32, the power rounded once.
std::vector<float> wavelengths_over_2pi(double theta, std::uint32_t head_dim) {
  std::vector<float> powers(head_dim / 2);
  for (std::uint32_t i = 0; i < powers.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    powers[i] = f32(rope_math::pow(f32(theta), exponent));
  }
  return powers;
}

std::vector<float> default_frequencies(double theta, std::uint32_t head_dim) {
  std::vector<float> inverse = wavelengths_over_2pi(theta, head_dim);
  for (float& value : inverse) value = 1.0f / value;
  return inverse;
}

// Long wavelengths are stretched by `factor`, short ones are kept, those between are blended. torch divides a number by
// a tensor as reciprocal times number: two roundings, repeated here.
void slow_llama3(const RopeConfig& rope, std::vector<float>& inverse) {
  const double original = rope.original_positions;
  const float longest_kept = f32(original / rope.high_freq_factor);
  const float shortest_slowed = f32(original / rope.low_freq_factor);
  const float factor = f32(rope.factor);
  for (float& value : inverse) {
    const float wave = (1.0f / value) * f32(2 * kPi);
    if (wave > shortest_slowed) {
      value = value / factor;
    } else if (!(wave < longest_kept)) {
      const float turns = (1.0f / wave) * f32(original);
      const float kept = (turns - f32(rope.low_freq_factor)) / f32(rope.high_freq_factor - rope.low_freq_factor);
      value = (1.0f - kept) * value / factor + kept * value;
    }
  }
}

// The dimension whose wave makes `rotations` turns within the original length (YaRN eq. 21 solved for the dimension).
double yarn_dimension(double rotations, const RopeConfig& rope, std::uint32_t head_dim) {
  return (head_dim * rope_math::log(rope.original_positions / (rotations * 2 * kPi))) /
         (2 * rope_math::log(rope.theta));
}

std::vector<float> yarn_frequencies(const RopeConfig& rope, std::uint32_t head_dim) {
  double low = yarn_dimension(rope.beta_fast, rope, head_dim);
  double high = yarn_dimension(rope.beta_slow, rope, head_dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;

  std::vector<float> inverse = wavelengths_over_2pi(rope.theta, head_dim);
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const float extrapolated = 1.0f / inverse[i];
    const float interpolated = 1.0f / (f32(rope.factor) * inverse[i]);
    const float ramp = std::clamp((static_cast<float>(i) - f32(low)) / f32(high - low), 0.0f, 1.0f);
    const float keep = 1.0f - ramp;
    inverse[i] = interpolated * (1.0f - keep) + extrapolated * keep;
  }
  return inverse;
}

// The factor and theta^(2i/D) are multiplied first, in f32, as transformers does.
std::vector<float> longrope_frequencies(const RopeConfig& rope, std::uint32_t head_dim) {
  const std::vector<double>& factors = rope.is_long ? rope.long_factors : rope.short_factors;
  std::vector<float> inverse = wavelengths_over_2pi(rope.theta, head_dim);
  CHECK_EQ(factors.size(), inverse.size());
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] = 1.0f / (f32(factors[i]) * inverse[i]);
  return inverse;
}

double longrope_attention_factor(const RopeConfig& rope) {
  const double mscale = rope.is_long ? rope.long_mscale : rope.short_mscale;
  if (mscale != 0.0) return mscale;
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.factor <= 1.0) return 1.0;
  return std::sqrt(1.0 + rope_math::log(rope.factor) / rope_math::log(rope.original_positions));
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * rope_math::log(factor) + 1.0;
}

double yarn_attention_factor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.mscale != 0.0 && rope.mscale_all_dim != 0.0) {
    return yarn_mscale(rope.factor, rope.mscale) / yarn_mscale(rope.factor, rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1.0);
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& rope, std::uint32_t whole_head) {
  const std::uint32_t head_dim = rope.rotary_dims(whole_head);
  if (rope.kind == RopeKind::kLongRope)
    return {longrope_frequencies(rope, head_dim), f32(longrope_attention_factor(rope))};
  if (rope.kind == RopeKind::kYarn) return {yarn_frequencies(rope, head_dim), f32(yarn_attention_factor(rope))};
  std::vector<float> inverse = default_frequencies(rope.theta, head_dim);
  if (rope.kind == RopeKind::kProportional) {
    const auto turned = static_cast<std::ptrdiff_t>(std::floor(rope.rotary_fraction * head_dim / 2));
    std::fill(inverse.begin() + turned, inverse.end(), 0.0f);
  }
  if (rope.kind == RopeKind::kLinear || rope.kind == RopeKind::kProportional) {
    for (float& value : inverse) value /= f32(rope.factor);
  }
  if (rope.kind == RopeKind::kLlama3) slow_llama3(rope, inverse);
  return {std::move(inverse), 1.0f};
}

RopeAngles rope_angles(const RopeConfig& rope, std::uint32_t head_dim, std::uint32_t positions) {
  CHECK_LE(positions, kMaxRopePositions);
  const RopeFrequencies frequencies = rope_frequencies(rope, head_dim);
  const std::size_t half = frequencies.inverse.size();
  RopeAngles angles;
  angles.cosines.resize(positions * half);
  angles.sines.resize(positions * half);
  for (std::uint32_t position = 0; position < positions; ++position) {
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies.inverse[i];
      const rope_math::SinCos value = rope_math::sin_cos(angle);
      angles.cosines[position * half + i] = f32(value.cos) * frequencies.attention_factor;
      const float sine = f32(value.sin) * frequencies.attention_factor;
      angles.sines[position * half + i] = rope.negated ? -sine : sine;
    }
  }
  return angles;
}

}  // namespace quire::model
