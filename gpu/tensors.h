// Tensors of the GPU backend: packed weights, vectors, row buffers, rope tables, K and V.
// Owner   the caller of Ops that asked for them; the device outlives them.
// Thread  made while starting; then the engine thread.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/backend/experts.h"
#include "core/backend/tensors.h"
#include "core/base/ids.h"
#include "gpu/device/kv_codes.h"
#include "gpu/device/numbers.h"
#include "gpu/kernels/routes.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// A packed weight: numbers | scales | bias | columns, each from a multiple of 256 bytes on, on the device. Until
// free_host_copy() its bytes are also in host memory, for writing them to a file.
class DeviceWeight final : public backend::Weight {
 public:
  // Every change of what these bytes mean changes the number: files of packed weights outlive the program.
  static constexpr const char* kLayout = "gpu tiles/4";

  DeviceWeight(Device& device, const backend::WeightShape& shape, std::span<const std::byte> packed,
               std::shared_ptr<const void> owner);

  std::uint32_t n() const override { return shape_.n; }
  std::uint32_t k() const override { return shape_.k; }
  backend::Format format() const override { return shape_.format; }
  bool has_columns() const override { return shape_.has_columns; }
  std::span<const std::byte> packed() const override { return packed_; }
  std::size_t bytes() const override { return memory_.bytes(); }
  void free_host_copy() override {
    packed_ = {};
    owner_.reset();
  }
  const WeightView& view() const { return view_; }
  std::byte* memory() const { return memory_.as<std::byte>(); }

  // For a table that is part of a larger one (a shard): its rows are those of the larger table from first_row on.
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

// Routes on the device: experts and weights of rows, and rows by expert (gpu/kernels/routes.h).
class DeviceRoutes final : public backend::Routes {
 public:
  DeviceRoutes(Device& device, std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k);
  std::uint32_t max_rows() const override { return max_rows_; }
  std::uint32_t num_experts() const override { return num_experts_; }
  std::uint32_t top_k() const override { return top_k_; }

  std::uint32_t* experts() const { return numbers(0); }  // [T, k]
  float* weights() const { return reinterpret_cast<float*>(numbers(1)); }
  std::uint32_t* places() const { return numbers(2); }
  std::uint32_t* rows() const { return numbers(3); }  // [places]
  std::uint32_t* slots() const { return numbers(4); }
  ExpertTile* tiles() const { return tiles_.as<ExpertTile>(); }
  // Of `rows` rows.
  std::uint32_t num_tiles(std::uint32_t rows) const { return most_expert_tiles(num_experts_, rows * top_k_); }

 private:
  static constexpr std::size_t kArrays = 5;
  std::uint32_t* numbers(std::size_t array) const { return memory_.as<std::uint32_t>() + array * max_rows_ * top_k_; }

  std::uint32_t max_rows_;
  std::uint32_t num_experts_;
  std::uint32_t top_k_;
  DeviceMemory memory_;
  DeviceMemory tiles_;
};

// max_rows of every row buffer that exists.
using BufferSizes = std::multiset<std::uint32_t>;

class DeviceBuffer final : public backend::Buffer {
 public:
  // `sizes` outlives the buffer and lists its max_rows as long as it exists.
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

// backend::block_layout() on the device.
backend::KvBlockLayout block_layout(const backend::KvShape& shape);
// Bytes of one int4 residual group: all layers, and the copy of the current layer's (KvView::found). 0 for other types.
std::size_t residual_group_bytes(const backend::KvShape& shape);

// The KV cache: [block][layer of its group]. Layout of a layer: gpu/device/layout.h; meaning of the codes: kv_codes.h.
class DeviceCache final : public backend::KvCache {
 public:
  DeviceCache(Device& device, const backend::KvShape& shape);
  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override { return memory_.bytes() + open_.bytes(); }
  std::size_t block_bytes() const override { return layout_.bytes; }

  const KvView& view(std::uint32_t layer) const { return views_[layer]; }
  std::size_t numbers_bytes() const { return memory_.bytes(); }
  std::byte* numbers() const { return memory_.as<std::byte>(); }
  std::span<const std::size_t> layer_offsets() const { return layout_.offsets; }
  std::byte* block(BlockId id) const { return numbers() + id.value * block_bytes(); }
  // Alike layers of one group whose places follow each other: one launch copies their rows.
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::span<const Run> layer_runs() const { return layer_runs_; }

  std::size_t residual_group_bytes() const { return gpu::residual_group_bytes(shape_); }
  std::byte* residual_group(std::uint32_t index) const {
    return open_.as<std::byte>() + index * residual_group_bytes();
  }

 private:
  void find_runs();

  backend::KvShape shape_;
  DeviceMemory memory_;
  DeviceMemory open_;
  backend::KvBlockLayout layout_;
  std::vector<Run> layer_runs_;
  std::vector<KvView> views_;  // [layers]
};

// Byte offsets of a packed weight's scales, bias and columns, and its size; its numbers begin at 0.
struct PackedPlaces {
  std::size_t scales = 0;
  std::size_t bias = 0;
  std::size_t columns = 0;
  std::size_t end = 0;
};
PackedPlaces packed_places(const backend::WeightShape& shape);

}  // namespace quire::gpu
