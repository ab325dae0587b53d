#include "gpu/pack.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/backend/quantize.h"
#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/start_error.h"
#include "gpu/supports.h"
#include "gpu/tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

WeightType supported(WeightType type) {
  if (supports(type)) return type;
  throw StartError(std::string("--quantize ") + name_of(type) + ": on the GPU weights are stored in " +
                   names_of_supported(kAllWeightTypes));
}

// x is what the checkpoint's `source` means.
void put(WeightType type, std::byte* numbers, std::size_t place, const std::byte* source, float x, std::int8_t code) {
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
      std::memcpy(numbers + place * bytes_of(type), source, bytes_of(type));
      return;
    case WeightType::kInt8:
      std::memcpy(numbers + place, &code, 1);
      return;
    default:
      const std::uint16_t half = bf16_of_f32(x);
      std::memcpy(numbers + place * 2, &half, 2);
  }
}

}  // namespace

Packed pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases, Quantize quantize) {
  CHECK(!matrices.empty());
  CHECK(biases.empty() || biases.size() == matrices.size());
  const std::uint32_t k = matrices.front().k;
  const DType dtype = matrices.front().dtype;
  Packed packed;
  packed.shape.k = k;
  packed.shape.type = supported(weight_type(dtype, quantize));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    CHECK_EQ(matrices[i].k, k);
    CHECK(matrices[i].dtype == dtype);
    packed.shape.n += matrices[i].n;
    packed.shape.has_bias = packed.shape.has_bias || (!biases.empty() && !biases[i].empty());
  }
  const PackedPlaces places = packed_places(packed.shape);
  packed.bytes.resize(places.end);

  std::vector<float> row(k);
  std::vector<std::int8_t> codes(k);
  std::uint32_t output = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    for (std::uint32_t n = 0; n < matrices[i].n; ++n, ++output) {
      const auto* source = static_cast<const std::byte*>(matrices[i].data) + std::size_t{n} * k * bytes_of(dtype);
      widen(source, dtype, row);
      if (packed.shape.type == WeightType::kInt8) {
        const float scale = int8_scale(source, dtype, k);
        int8_codes(row, scale, codes.data());
        std::memcpy(packed.bytes.data() + places.scales + output * sizeof(float), &scale, sizeof(float));
      }
      for (std::uint32_t input = 0; input < k; ++input) {
        put(packed.shape.type, packed.bytes.data(),
            place_of_weight(packed.shape.type, packed.shape.n, k, output, input), source + input * bytes_of(dtype),
            row[input], codes[input]);
      }
      if (packed.shape.has_bias) {
        // -0: the only value whose addition changes nothing.
        const float bias = biases[i].empty() ? -0.0f : biases[i][n];
        std::memcpy(packed.bytes.data() + places.bias + output * sizeof(float), &bias, sizeof(float));
      }
    }
  }
  return packed;
}

}  // namespace quire::gpu
