// Opaque device objects with a shape: weights, vectors, buffers and the KV cache. Only the backend that made an object
// knows its layout (device_cast.h).
// Shape   letters as in ARCHITECTURE.md: T rows, E hidden, N outputs, K inputs, H query heads, G kv heads, D head size,
//         P block.
// Owner   the caller of the Ops function that made the object; no object may outlive its backend.
// Thread  made at start; then the engine thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/backend/weights/format.h"

namespace quire::backend {

// Storage type of K and V; every type is read as f32.
enum class KvType : std::uint8_t {
  kF32,
  kBF16,  // round to nearest even
  kFp8,   // e4m3fn, rounded to nearest even, saturating at 448, no scale
  kInt8,  // -127..127 times an f32 scale: one for a token's K and one for its V in each head
  kInt4,  // in groups of 16 positions: K per channel, V per token; see Ops::rope_store
};
inline constexpr KvType kAllKvTypes[] = {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4};

constexpr const char* name_of(KvType type) {
  constexpr const char* kNames[] = {"f32", "bf16", "fp8", "int8", "int4"};
  return kNames[static_cast<int>(type)];
}

// A borrowed row-major matrix [N, K] in host memory, in the checkpoint's own bits (little endian; may be unaligned).
struct HostMatrix {
  const void* data = nullptr;    // rows of row_bytes()
  Format format = Format::kF32;  // a plain one, blocks, or codes with stored scales
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  float factor = 1.0f;  // of all numbers; other than 1 only where they are packed in a format with has_own_factor()
  // [k] input i of a row is multiplied by x[columns[i]]. Empty: by x[i].
  std::span<const std::uint32_t> columns{};
};

// Matrices that share their input, packed together: y = x · [W0; W1; …]ᵀ + bias. Each keeps its checkpoint's bits or is
// quantised: see StepOps::multiply.
class Weight {
 public:
  virtual ~Weight() = default;
  virtual std::uint32_t n() const = 0;  // outputs of all its matrices
  virtual std::uint32_t k() const = 0;  // inputs
  virtual Format format() const = 0;
  virtual bool has_columns() const { return false; }  // WeightShape::has_columns
  // The whole packed weight in host memory: input of Factory::adopt().
  virtual std::span<const std::byte> packed() const = 0;
  virtual std::size_t bytes() const { return packed().size(); }
  // Frees the host copy in backends that have a copy in device memory; packed() must not be called afterwards.
  virtual void free_host_copy() {}
};

// The properties of a packed weight that, together with the backend's layout, decide its size in bytes.
struct WeightShape {
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  Format format = Format::kF32;
  bool has_bias = false;
  bool has_columns = false;  // HostMatrix::columns, the same of all its matrices
};

// A vector of f32: a norm's scale.
class Vector {
 public:
  virtual ~Vector() = default;
  virtual std::uint32_t size() const = 0;
};

// cos and sin of every position: [positions, D/2] each, multiplied by the attention factor of YaRN.
class RopeTable {
 public:
  virtual ~RopeTable() = default;
  virtual std::uint32_t positions() const = 0;
};

// A row buffer [max_rows, width] of f32. Ops use its first T or R rows.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::uint32_t max_rows() const = 0;
  virtual std::uint32_t width() const = 0;
};

// Parallel residual streams: buffers of one width.
using Streams = std::span<Buffer* const>;
inline constexpr std::uint32_t kMaxStreams = 4;

// K and V of one layer, and their place. With a latent they are one row of head_dim numbers, of which V is the last
// `latent`, and the K of all query heads the whole. Layers are cut into groups: a block has K and V of P tokens for
// the layers of one group, so that layers of a group have the same block tables. In a block the layers lie one behind
// the other, in the order of their places.
struct KvLayer {
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t group = 0;
  std::uint32_t place = 0;   // among the layers of its group
  std::uint32_t latent = 0;  // 0: K and V are two rows

  bool operator==(const KvLayer&) const = default;
};

struct KvShape {
  std::vector<KvLayer> layers;      // those that store K and V
  std::uint32_t block_tokens = 16;  // P, a multiple of 16
  std::uint32_t num_blocks = 0;
  KvType type = KvType::kF32;
  std::uint32_t num_residual_groups = 0;  // int4: number of residual groups, one for each running sequence

  // The largest of a value of each layer; 0 without layers.
  template <typename Value>
  auto most(const Value& value) const {
    decltype(value(KvLayer{})) largest = 0;
    for (const KvLayer& layer : layers) largest = std::max(largest, value(layer));
    return largest;
  }
  std::uint32_t num_layers() const { return static_cast<std::uint32_t>(layers.size()); }
  std::uint32_t num_groups() const {
    return most([](const KvLayer& layer) { return layer.group + 1; });
  }
  std::uint32_t most_kv_heads() const {
    return most([](const KvLayer& layer) { return layer.num_kv_heads; });
  }
  std::uint32_t most_head_dim() const {
    return most([](const KvLayer& layer) { return layer.head_dim; });
  }
  // True if layers of the same place are of equal size in all groups.
  bool groups_are_alike() const {
    const auto fits = [](const KvLayer& a, const KvLayer& b) {
      return a.place != b.place ||
             (a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim && a.latent == b.latent);
    };
    return std::ranges::all_of(layers, [&](const KvLayer& a) {
      return std::ranges::all_of(layers, [&](const KvLayer& b) { return fits(a, b); });
    });
  }
};

struct KvBlockLayout {
  std::vector<std::size_t> offsets;  // [layers] where a layer begins in its group's blocks
  std::size_t bytes = 0;             // of a block: of all layers of the largest group
};

// SIZE_MAX: beyond 64 bits.
template <typename LayerBytes>
KvBlockLayout block_layout(const KvShape& shape, const LayerBytes& bytes_of) {
  std::vector<std::size_t> order(shape.layers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t layer) { return shape.layers[layer].place; });
  KvBlockLayout layout{.offsets = std::vector<std::size_t>(order.size())};
  std::vector<std::size_t> ends(shape.num_groups());
  for (const std::size_t layer : order) {
    std::size_t& end = ends[shape.layers[layer].group];
    layout.offsets[layer] = end;
    const std::size_t bytes = bytes_of(shape.layers[layer]);
    if (__builtin_add_overflow(end, bytes, &end)) end = SIZE_MAX;
    layout.bytes = std::max(layout.bytes, end);
  }
  return layout;
}

// Layers alike, in one group.
inline std::vector<KvLayer> kv_layers(std::uint32_t num_layers, std::uint32_t num_kv_heads, std::uint32_t head_dim) {
  std::vector<KvLayer> layers;
  for (std::uint32_t place = 0; place < num_layers; ++place) layers.push_back({num_kv_heads, head_dim, 0, place});
  return layers;
}

// K and V of every block and layer. Contents are undefined until a row stores them; undefined contents are never read.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual const KvShape& shape() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::size_t block_bytes() const = 0;  // of one block, whatever its group
};

}  // namespace quire::backend
