#include "gpu/pack.h"

#include <algorithm>
#include <cstring>

#include "core/backend/weights/quantize.h"
#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "gpu/runtime/host_threads.h"
#include "gpu/tensors.h"

namespace quire::gpu {
namespace {

using namespace backend;

constexpr std::uint32_t kPartOutputs = 4 * kTileOutputs;
constexpr std::size_t kFewNumbers = std::size_t{1} << 20;  // smaller weights are packed without other threads

// Places of an output's numbers, which are the same within each step.
class PlacesInTile {
 public:
  PlacesInTile(const WeightShape& shape, std::uint32_t output) : shape_(shape), output_(output) {
    if (!in_tiles(shape.format) || shape.format.is_blocks()) return;
    for (std::uint32_t i = 0; i < kStepInputs; ++i) {
      in_step_[i] = place_in_step(shape.format, output % kTileOutputs, i);
    }
  }

  // step(): the step that an input lies in. in_step(): the place of its number within the step, in numbers.
  std::byte* step(std::byte* numbers, std::uint32_t input) const {
    return numbers +
           step_at(step_bytes(shape_.format), shape_.n, shape_.k, output_ / kTileOutputs, input / kStepInputs);
  }
  std::uint32_t in_step(std::uint32_t input) const { return in_step_[input % kStepInputs]; }

 private:
  WeightShape shape_;
  std::uint32_t output_;
  std::uint32_t in_step_[kStepInputs] = {};
};

// Copies the bits of an output's numbers: f32 and f16.
void put_columns(const WeightShape& shape, std::uint32_t output, const std::byte* source, std::byte* numbers) {
  const std::size_t size = bytes_of(shape.format);
  for (std::uint32_t input = 0; input < shape.k; ++input) {
    std::memcpy(numbers + place_in_columns(shape.n, output, input) * size, source + input * size, size);
  }
}

void put_bf16(const PlacesInTile& places, std::span<const float> row, std::byte* numbers) {
  for (std::uint32_t input = 0; input < row.size(); ++input) {
    const std::uint16_t half = bf16_of_f32(row[input]);
    std::memcpy(places.step(numbers, input) + places.in_step(input) * 2, &half, 2);
  }
}

void put_bytes(const PlacesInTile& places, std::span<const std::byte> codes, std::byte* numbers) {
  for (std::uint32_t input = 0; input < codes.size(); ++input) {
    places.step(numbers, input)[places.in_step(input)] = codes[input];
  }
}

// Writes codes and scales; the bytes are 0 before.
void put_nibbles(const PlacesInTile& places, Format format, std::uint32_t output, std::span<const float> row,
                 std::byte* numbers) {
  std::int8_t codes[kGroupInputs];
  for (std::uint32_t first = 0; first < row.size(); first += kGroupInputs) {
    const auto group = row.subspan(first, std::min<std::size_t>(kGroupInputs, row.size() - first));
    const std::uint16_t scale = int4_scale(group);
    int4_codes(group, scale, codes);
    std::byte* step = places.step(numbers, first);
    std::memcpy(step + scale_in_step(output % kTileOutputs, first % kStepInputs), &scale, 2);
    for (std::uint32_t i = 0; i < group.size(); ++i) {
      const std::uint32_t place = places.in_step(first + i);
      const int nibble = in_integers(format) ? codes[i] & 15 : codes[i] + 8;
      step[place / 2] |= static_cast<std::byte>(nibble << place % 2 * 4);
    }
  }
}

// A scale for more inputs than a step has is written in each of its steps.
template <typename StepOf>
void put_wide_scales(const BlockLayout& layout, const BlockShape& places, const CodedBlocks& coded, std::uint32_t count,
                     std::uint32_t o, const StepOf& step_of) {
  for (std::uint32_t input = 0; input < count; input += places.scale_inputs) {
    const std::uint32_t block = input / layout.elements;
    const std::uint32_t in_step = input % kStepInputs / places.scale_inputs;
    std::memcpy(step_of(input) + places.wide_at(in_step, o), &coded.wide_scales[block], sizeof(float));
    if (places.has_zeros) std::memcpy(step_of(input) + places.zero_at(in_step, o), &coded.zeros[block], 1);
  }
}

// Blocks: writes codes and scales; the bytes are 0 before.
void put_blocks(const WeightShape& shape, std::uint32_t output, const std::byte* source, std::byte* numbers) {
  const BlockLayout& layout = layout_of(shape.format.blocks);
  const BlockShape places = block_shape(layout.type);
  const std::uint32_t o = output % kTileOutputs;
  for (std::uint32_t first = 0; first < shape.k; first += CodedBlocks::kMostNumbers) {
    const std::uint32_t count = std::min(CodedBlocks::kMostNumbers, shape.k - first);
    const CodedBlocks coded = read_blocks(layout, source, count);
    source += stored_bytes(shape.format, count);
    const auto step_of = [&](std::uint32_t input) {
      return numbers +
             step_at(places.step_bytes(), shape.n, shape.k, output / kTileOutputs, (first + input) / kStepInputs);
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const BlockPlane& plane : {places.low(), places.high()}) {
        if (plane.bits == 0) continue;
        const BitPlace at = place_of_code(places, plane, o, i % kStepInputs);
        const std::uint32_t bits = coded.codes[i] >> plane.shift & ((1u << plane.bits) - 1);
        step_of(i)[at.byte] |= static_cast<std::byte>(bits << at.shift);
      }
    }
    if (places.has_wide_scales()) {
      put_wide_scales(layout, places, coded, count, o, step_of);
      continue;
    }
    for (std::uint32_t group = 0; group < count / layout.group; ++group) {
      std::byte* step = step_of(group * layout.group);
      const std::uint32_t in_step = group % places.groups();
      for (std::uint32_t kind = 0; kind < places.kinds; ++kind) {
        const auto& halves = kind == 0 ? coded.scales : coded.minima;
        const auto& integers = kind == 0 ? coded.scale_factors : coded.minimum_factors;
        std::memcpy(step + places.half_at(kind, in_step, o), &halves[places.has_integers() ? 0 : group], 2);
        if (places.has_integers()) std::memcpy(step + places.integer_at(kind, in_step, o), &integers[group], 1);
      }
    }
  }
}

}  // namespace

Packed pack(std::span<const HostMatrix> matrices, std::span<const std::span<const float>> biases,
            std::optional<Format> quantize) {
  CHECK(!matrices.empty());
  CHECK(biases.empty() || biases.size() == matrices.size());
  const std::uint32_t k = matrices.front().k;
  const Format dtype = matrices.front().format;
  Packed packed;
  WeightShape& shape = packed.shape;
  shape.k = k;
  shape.format = quantize.value_or(dtype);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    CHECK_EQ(matrices[i].k, k);
    CHECK(matrices[i].format == dtype);
    CHECK(matrices[i].factor == 1.0f || has_own_factor(shape.format));
    CHECK(std::ranges::equal(matrices[i].columns, matrices.front().columns));
    CHECK(!has_stored_scales(dtype) || keeps_codes(dtype, shape.format));
    shape.n += matrices[i].n;
    shape.has_bias = shape.has_bias || (!biases.empty() && !biases[i].empty());
  }
  const std::span<const std::uint32_t> columns = matrices.front().columns;
  CHECK(columns.empty() || columns.size() == k);
  shape.has_columns = !columns.empty();
  const PackedPlaces parts = packed_places(shape);
  packed.bytes.resize(parts.end);
  std::ranges::copy(std::as_bytes(columns), packed.bytes.begin() + static_cast<std::ptrdiff_t>(parts.columns));

  std::byte* numbers = packed.bytes.data();
  const auto put_output = [&](std::uint32_t output, std::span<float> row) {
    std::size_t i = 0;
    std::uint32_t n = output;  // within its matrix
    while (n >= matrices[i].n) n -= matrices[i++].n;
    const auto* source = static_cast<const std::byte*>(matrices[i].data) + n * row_bytes(dtype, k);
    const PlacesInTile places(shape, output);
    if (shape.format.is_blocks()) {
      put_blocks(shape, output, source, numbers);
      if (has_own_factor(shape.format)) {
        std::memcpy(numbers + parts.scales + output * sizeof(float), &matrices[i].factor, sizeof(float));
      }
    } else if (!in_tiles(shape.format)) {
      put_columns(shape, output, source, numbers);
    } else {
      if (!keeps_codes(dtype, shape.format)) widen(source, dtype, row);
      if (has_output_scales(shape.format)) {
        const float scale = output_scale(shape.format, source, dtype, k);
        std::vector<std::byte> codes(k);
        if (keeps_codes(dtype, shape.format)) std::memcpy(codes.data(), source, k);
        if (!keeps_codes(dtype, shape.format)) output_codes(shape.format, row, scale, codes.data());
        put_bytes(places, codes, numbers);
        std::memcpy(numbers + parts.scales + output * sizeof(float), &scale, sizeof(float));
      } else if (in_nibbles(shape.format)) {
        put_nibbles(places, shape.format, output, row, numbers);
      } else {
        put_bf16(places, row, numbers);
      }
    }
    if (shape.has_bias) {
      // -0: the only value whose addition changes nothing.
      const float bias = biases[i].empty() ? -0.0f : biases[i][n];
      std::memcpy(numbers + parts.bias + output * sizeof(float), &bias, sizeof(float));
    }
  };
  // Outputs of a tile share bytes, so a part consists of whole tiles.
  const auto put_part = [&](std::uint32_t part) {
    std::vector<float> row(k);
    const std::uint32_t end = std::min(shape.n, (part + 1) * kPartOutputs);
    for (std::uint32_t output = part * kPartOutputs; output < end; ++output) put_output(output, row);
  };
  const std::uint32_t num_parts = (shape.n + kPartOutputs - 1) / kPartOutputs;
  if (std::size_t{shape.n} * k < kFewNumbers) {
    for (std::uint32_t part = 0; part < num_parts; ++part) put_part(part);
  } else {
    for_each_part(num_parts, put_part);
  }
  return packed;
}

}  // namespace quire::gpu
