// RoPE settings of a model, as its config.json says them in either spelling.
// Owner   a value.
// Thread  any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire::model {

// kDynamic (dynamic NTK) has kDefault's frequencies up to max_positions; ModelSpec::max_model_len() allows no more.
// kLongRope divides the frequencies by a factor each. kProportional has the frequencies of the whole head, and only the
// first pairs turn.
enum class RopeKind : std::uint8_t { kDefault, kLinear, kLlama3, kYarn, kDynamic, kLongRope, kProportional };

const char* name_of(RopeKind kind);

// RoPE settings, from either spelling: rope_scaling + rope_theta, or rope_parameters.
struct RopeConfig {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                     // linear, llama3, yarn, dynamic, longrope, proportional
  double low_freq_factor = 1.0;            // llama3
  double high_freq_factor = 4.0;           // llama3
  std::uint32_t original_positions = 0;    // llama3, yarn, longrope: the model's first training length
  std::optional<double> attention_factor;  // yarn, longrope: multiplies cos and sin; absent: computed
  double beta_fast = 32.0;                 // yarn
  double beta_slow = 1.0;                  // yarn
  double mscale = 0.0;                     // yarn; 0: absent
  double mscale_all_dim = 0.0;             // yarn; 0: absent
  bool truncate = true;                    // yarn: the ends of the ramp are rounded outwards to whole dimensions
  std::vector<double> short_factors{};     // longrope: of each pair, for sequences up to original_positions
  std::vector<double> long_factors{};      // longrope: for longer ones
  double short_mscale = 0.0;               // longrope: in place of attention_factor, of each table; 0: absent
  double long_mscale = 0.0;
  bool is_long = false;          // longrope: long_factors are used, for sequences of every length
  double rotary_fraction = 1.0;  // of the head's dimensions that turn
  bool negated = false;          // heads turn the other way

  // Dimensions that turn, of a head of so many. kProportional: all, some of them by an angle of 0.
  std::uint32_t rotary_dims(std::uint32_t head_dim) const {
    return kind == RopeKind::kProportional ? head_dim : static_cast<std::uint32_t>(rotary_fraction * head_dim);
  }
  bool operator==(const RopeConfig&) const = default;
};

// RoPE settings as text: "default(theta=10000)", "yarn(theta=1e+06,factor=4,…)". Has every number that affects the
// tables, as the shortest exact decimal.
std::string describe(const RopeConfig& rope);

}  // namespace quire::model
