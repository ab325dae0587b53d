// What the GPU backend holds: packed weights, row buffers, rope tables, K and V.
// Owner   whoever asked Ops to make them; the device outlives them.
// Thread  made while starting; then the engine thread.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "gpu/device/kv_codes.h"
#include "gpu/device/numbers.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// Numbers | scales | bias, each from a multiple of 256 bytes on: on the device, and until forget_packed() in host memory, too, for
// who writes them to a file.
class DeviceWeight final : public backend::Weight {
 public:
  // Whatever changes what these bytes mean gives it a new number: files of packed weights outlive the program.
  static constexpr const char* kLayout = "gpu tiles/3";

  DeviceWeight(Device& device, const backend::WeightShape& shape, std::span<const std::byte> packed,
               std::shared_ptr<const void> owner);

  std::uint32_t n() const override { return shape_.n; }
  std::uint32_t k() const override { return shape_.k; }
  backend::WeightType type() const override { return shape_.type; }
  std::span<const std::byte> packed() const override { return packed_; }
  std::size_t bytes() const override { return memory_.bytes(); }
  void forget_packed() override {
    packed_ = {};
    owner_.reset();
  }
  const WeightView& view() const { return view_; }
  std::byte* memory() const { return memory_.as<std::byte>(); }

  // As a table: of a larger one it is the rows from here on.
  void begins_at(std::uint32_t first_row) {
    first_row_ = first_row;
    is_part_ = true;
  }
  std::uint32_t first_row() const { return first_row_; }
  bool is_part() const { return is_part_; }

 private:
  backend::WeightShape shape_;
  std::span<const std::byte> packed_;
  std::shared_ptr<const void> owner_;
  DeviceMemory memory_;
  WeightView view_;
  std::uint32_t first_row_ = 0;
  bool is_part_ = false;
};

class DeviceVector final : public backend::Vector {
 public:
  DeviceVector(Device& device, std::span<const float> values);
  std::uint32_t size() const override { return size_; }
  const float* data() const { return memory_.as<const float>(); }

 private:
  std::uint32_t size_;
  DeviceMemory memory_;
};

class DeviceRope final : public backend::RopeTable {
 public:
  DeviceRope(Device& device, std::span<const float> cosines, std::span<const float> sines, std::uint32_t half);
  std::uint32_t positions() const override { return positions_; }
  std::uint32_t half() const { return half_; }
  const float* cosines() const { return cosines_.as<const float>(); }
  const float* sines() const { return sines_.as<const float>(); }

 private:
  std::uint32_t positions_;
  std::uint32_t half_;
  DeviceMemory cosines_;
  DeviceMemory sines_;
};

// Rows that each of the buffers there are has room for.
using BufferSizes = std::multiset<std::uint32_t>;

class DeviceBuffer final : public backend::Buffer {
 public:
  // `sizes` outlives it, and says of it for as long as it is there.
  DeviceBuffer(Device& device, BufferSizes& sizes, std::uint32_t max_rows, std::uint32_t width);
  ~DeviceBuffer() override { sizes_.erase(at_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t width() const override { return width_; }
  float* data() const { return memory_.as<float>(); }
  float* row(std::size_t r) const { return data() + r * width_; }

 private:
  std::uint32_t max_rows_;
  std::uint32_t width_;
  DeviceMemory memory_;
  BufferSizes& sizes_;
  BufferSizes::iterator at_;
};

// int4: an open group of all layers, and that of the layer at hand.
std::size_t open_group_bytes(const backend::KvShape& shape);

// How they lie: gpu/device/layout.h; what they mean: kv_codes.h.
class DeviceCache final : public backend::KvCache {
 public:
  DeviceCache(Device& device, const backend::KvShape& shape);
  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes() + open_.bytes() + tails_.size(); }
  std::size_t block_bytes() const override { return shape_.all_layers() * layer_bytes() + shape_.tail_bytes; }

  const KvView& view() const { return view_; }
  std::size_t numbers_bytes() const { return memory_.bytes(); }
  std::size_t layer_bytes() const { return view_.layout.block_bytes(); }  // of a block
  std::byte* layer_of(std::uint32_t layer, BlockId block) const {
    return memory_.as<std::byte>() + view_.layout.block_at(layer, block.value);
  }
  std::size_t open_group_bytes() const { return gpu::open_group_bytes(shape_); }
  std::byte* open_group(std::uint32_t index) const { return open_.as<std::byte>() + index * open_group_bytes(); }

  std::span<std::byte> tail(BlockId block) { return std::span(tails_).subspan(tail_at(block), shape_.tail_bytes); }
  std::span<const std::byte> tail(BlockId block) const {
    return std::span(tails_).subspan(tail_at(block), shape_.tail_bytes);
  }

 private:
  std::size_t tail_at(BlockId block) const { return std::size_t{block.value} * shape_.tail_bytes; }

  backend::KvShape shape_;
  DeviceMemory memory_;
  DeviceMemory open_;
  KvView view_;
  std::vector<std::byte> tails_;  // nobody on the device looks at them
};

// Numbers, scales and bias of a weight: where each begins, and where all ends.
struct PackedPlaces {
  std::size_t scales = 0;
  std::size_t bias = 0;
  std::size_t end = 0;
};
PackedPlaces packed_places(const backend::WeightShape& shape);

}  // namespace quire::gpu
