#include "core/model/quantized/kv_scales.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/model/quantized/checks.h"
#include "core/model/quantized/number_grid.h"

namespace quire::model {
namespace {

using Tensors = Checkpoint::Tensors;

constexpr std::string_view kKeys = ".k_scale";
constexpr std::string_view kValues = ".v_scale";

// Names of a scale beside those of the module of attention.
struct OtherName {
  std::string_view end;
  std::string_view becomes;
  bool of_outputs = false;  // of K and V only where they are declared to be kept in FP8
};
constexpr OtherName kOtherNames[] = {{".k_proj.k_scale", kKeys},
                                     {".v_proj.v_scale", kValues},
                                     {".qkv_proj.k_scale", kKeys},
                                     {".qkv_proj.v_scale", kValues},
                                     {".attn.k_scale", kKeys},
                                     {".attn.v_scale", kValues},
                                     {".k_proj.output_scale", kKeys, true},
                                     {".v_proj.output_scale", kValues, true},
                                     {".kv_scale", kKeys},
                                     {".kv_scale", kValues}};

float scale_of(const Tensor& tensor) {
  const float scale = read_number(tensor);
  constexpr float kLeast = std::numeric_limits<float>::min();  // its inverse is finite
  if (scale < kLeast) refuse_tensor(tensor, fmt::format("is {}; expected a number from {:.3g} on", scale, kLeast));
  return scale;
}

}  // namespace

bool is_kv_scale(std::string_view name) { return name.ends_with(kKeys) || name.ends_with(kValues); }

Tensors with_kv_scales_named(Tensors tensors, const Quantization& quantization) {
  std::vector<std::pair<std::string, Tensor>> renamed;
  for (const auto& [name, tensor] : tensors) {
    for (const OtherName& other : kOtherNames) {
      if (!name.ends_with(other.end) || (other.of_outputs && !quantization.kv_in_fp8)) continue;
      renamed.emplace_back(name.substr(0, name.size() - other.end.size()) + std::string(other.becomes), tensor);
    }
  }
  for (const OtherName& other : kOtherNames) {
    std::erase_if(tensors, [&](const auto& entry) { return entry.first.ends_with(other.end); });
  }
  for (auto& [name, tensor] : renamed) {
    tensor.name = name;
    tensors.try_emplace(name, std::move(tensor));
  }
  return tensors;
}

StoredKvScales kv_scales_of(const Checkpoint& checkpoint, std::string_view layer) {
  StoredKvScales scales;
  for (auto at = checkpoint.tensors().lower_bound(layer);
       at != checkpoint.tensors().end() && at->first.starts_with(layer); ++at) {
    const auto& [name, tensor] = *at;
    if (!is_kv_scale(name)) continue;
    if (tensor.num_elements() != 1) {
      log_warn("checkpoint", "{}: tensor '{}' has {} scales; expected one: it is left out", tensor.file, log_safe(name),
               tensor.num_elements());
      continue;
    }
    (name.ends_with(kKeys) ? scales.k : scales.v) = scale_of(tensor);
  }
  return scales;
}

}  // namespace quire::model
