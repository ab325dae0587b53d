#include "gpu/tensors.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_constants.h"
#include "gpu/linear_layers.h"

namespace quire::gpu {
namespace {

using backend::KvLayer;
using backend::KvType;

constexpr std::size_t kPartBytes = 256;
// Floats of the largest layer's part of a residual group.
std::size_t open_floats_of(const backend::KvShape& shape) {
  return shape.most(
      [](const KvLayer& layer) { return std::size_t{layer.num_kv_heads} * kGroupTokens * 2 * layer.head_dim; });
}

constexpr std::size_t whole_parts(std::size_t bytes) { return (bytes + kPartBytes - 1) / kPartBytes * kPartBytes; }

}  // namespace

PackedPlaces packed_places(const backend::WeightShape& shape) {
  expect_kernels(shape.format);
  PackedPlaces places;
  places.scales = whole_parts(number_bytes(shape.format, shape.n, shape.k));
  places.bias = places.scales + (has_output_scales(shape.format) ? whole_parts(shape.n * sizeof(float)) : 0);
  places.columns = places.bias + (shape.has_bias ? whole_parts(shape.n * sizeof(float)) : 0);
  places.end = places.columns + (shape.has_columns ? whole_parts(shape.k * sizeof(std::uint32_t)) : 0);
  return places;
}

DeviceWeight::DeviceWeight(Device& device, const backend::WeightShape& shape, std::span<const std::byte> packed,
                           std::shared_ptr<const void> owner)
    : shape_(shape),
      packed_(packed),
      owner_(std::move(owner)),
      memory_(device, packed.size(), "weights", Use::kConstant) {
  const PackedPlaces places = packed_places(shape);
  CHECK_EQ(places.end, packed.size());
  device.upload(memory_.data(), packed.data(), packed.size());
  const auto* bytes = memory_.as<const std::byte>();
  view_.numbers = bytes;
  if (has_output_scales(shape.format)) view_.scales = reinterpret_cast<const float*>(bytes + places.scales);
  if (shape.has_bias) view_.bias = reinterpret_cast<const float*>(bytes + places.bias);
  if (shape.has_columns) view_.columns = reinterpret_cast<const std::uint32_t*>(bytes + places.columns);
  view_.n = shape.n;
  view_.k = shape.k;
  view_.format = shape.format;
  if (in_tiles(shape.format)) view_.step_bytes = step_bytes(shape.format);
  if (shape.format.is_blocks()) view_.blocks = block_shape(shape.format.blocks);
}

DeviceRoutes::DeviceRoutes(Device& device, std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k)
    : max_rows_(max_rows),
      num_experts_(num_experts),
      top_k_(top_k),
      memory_(device, kArrays * max_rows * top_k * sizeof(std::uint32_t), "routes of experts"),
      tiles_(device, num_tiles(max_rows) * sizeof(ExpertTile), "tiles of rows by expert") {
  CHECK(num_experts <= kMostExperts && top_k <= kMostChosen);
}

DeviceVector::DeviceVector(Device& device, std::span<const float> values)
    : size_(static_cast<std::uint32_t>(values.size())), memory_(device, values.size_bytes(), "a vector") {
  device.upload(memory_.data(), values.data(), values.size_bytes());
}

DeviceRope::DeviceRope(Device& device, std::span<const float> cosines, std::span<const float> sines, std::uint32_t half)
    : positions_(half == 0 ? 0 : static_cast<std::uint32_t>(cosines.size() / half)),
      half_(half),
      cosines_(device, cosines.size_bytes(), "a rope table"),
      sines_(device, sines.size_bytes(), "a rope table") {
  CHECK_EQ(cosines.size(), sines.size());
  device.upload(cosines_.data(), cosines.data(), cosines.size_bytes());
  device.upload(sines_.data(), sines.data(), sines.size_bytes());
}

DeviceBuffer::DeviceBuffer(Device& device, BufferSizes& sizes, std::uint32_t max_rows, std::uint32_t width)
    : max_rows_(max_rows),
      width_(width),
      memory_(device, std::size_t{max_rows} * width * sizeof(float), "a row buffer"),
      sizes_(sizes),
      at_(sizes.insert(max_rows)) {}

DeviceCache::DeviceCache(Device& device, const backend::KvShape& shape) : shape_(shape), layout_(block_layout(shape)) {
  CHECK_EQ(shape.block_tokens % kGroupTokens, 0u);
  memory_ = DeviceMemory(device, layout_.bytes * shape.num_blocks, "the KV cache");
  open_ = DeviceMemory(device, shape.num_residual_groups * residual_group_bytes(), "the KV cache's residual groups");
  const std::size_t open_floats = open_floats_of(shape);
  for (std::uint32_t index = 0; index < shape.num_layers(); ++index) {
    const KvLayer& layer = shape.layers[index];
    KvView view;
    view.numbers = numbers() + layout_.offsets[index];
    view.layout = {layer.num_kv_heads, layer.head_dim, shape.block_tokens, shape.type, layout_.bytes};
    if (open_.bytes() > 0) {
      view.open = open_.as<float>() + index * open_floats;
      view.found = open_.as<float>() + shape.num_layers() * open_floats;
      view.open_stride = (shape.num_layers() + std::size_t{1}) * open_floats;
    }
    views_.push_back(view);
  }
  find_runs();
}

void DeviceCache::find_runs() {
  for (std::uint32_t index = 0; index < shape_.num_layers(); ++index) {
    const KvLayer& layer = shape_.layers[index];
    const auto ends_before = [&](const Run& run) {
      KvLayer next = shape_.layers[run.first];
      next.place += run.count;
      return next == layer;
    };
    const auto run = std::ranges::find_if(layer_runs_, ends_before);
    if (run == layer_runs_.end()) {
      layer_runs_.push_back({index, 1});
    } else {
      ++run->count;
    }
  }
}

backend::KvBlockLayout block_layout(const backend::KvShape& shape) {
  return backend::block_layout(shape, [&](const KvLayer& layer) {
    return KvLayout{layer.num_kv_heads, layer.head_dim, shape.block_tokens, shape.type}.block_bytes();
  });
}

std::size_t residual_group_bytes(const backend::KvShape& shape) {
  if (shape.type != KvType::kInt4) return 0;
  return (std::size_t{shape.num_layers()} + 1) * open_floats_of(shape) * sizeof(float);
}

}  // namespace quire::gpu
