#include "gpu/tensors.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::gpu {
namespace {

using backend::KvType;

constexpr std::size_t kPartBytes = 256;
constexpr std::size_t whole_parts(std::size_t bytes) { return (bytes + kPartBytes - 1) / kPartBytes * kPartBytes; }

}  // namespace

PackedPlaces packed_places(const backend::WeightShape& shape) {
  PackedPlaces places;
  places.scales = whole_parts(number_bytes(shape.type, shape.n, shape.k));
  places.bias = places.scales + (has_output_scales(shape.type) ? whole_parts(shape.n * sizeof(float)) : 0);
  places.end = places.bias + (shape.has_bias ? whole_parts(shape.n * sizeof(float)) : 0);
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
  if (has_output_scales(shape.type)) view_.scales = reinterpret_cast<const float*>(bytes + places.scales);
  if (shape.has_bias) view_.bias = reinterpret_cast<const float*>(bytes + places.bias);
  view_.n = shape.n;
  view_.k = shape.k;
  view_.type = shape.type;
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

DeviceCache::DeviceCache(Device& device, const backend::KvShape& shape) : shape_(shape) {
  CHECK_EQ(shape.block_tokens % backend::kGroupTokens, 0u);
  view_.layout = {shape.num_blocks, shape.num_kv_heads, shape.head_dim, shape.block_tokens, shape.type};
  view_.num_layers = shape.all_layers();
  memory_ = DeviceMemory(device, shape.all_layers() * shape.num_blocks * layer_bytes(), "the KV cache");
  open_ = DeviceMemory(device, shape.num_open_groups * open_group_bytes(), "the KV cache's open groups");
  view_.numbers = memory_.as<std::byte>();
  view_.open = open_.as<float>();
  tails_.resize(std::size_t{shape.num_blocks} * shape.tail_bytes);
}

std::size_t open_group_bytes(const backend::KvShape& shape) {
  if (shape.type != KvType::kInt4) return 0;
  const std::size_t layers = std::size_t{shape.all_layers()} + 1;
  return layers * shape.num_kv_heads * backend::kGroupTokens * 2 * shape.head_dim * sizeof(float);
}

}  // namespace quire::gpu
