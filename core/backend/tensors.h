// What a device holds, seen from outside: opaque things with a shape. Only the backend that made one looks inside.
// Shape   letters as in ARCHITECTURE.md: T rows, E hidden, N outputs, K inputs, H query heads, G kv heads, D head size,
//         P block.
// Owner   whoever asked the backend to make it; none may outlive its backend.
// Thread  made while starting; then the engine thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire::backend {

enum class DType : std::uint8_t { kF32, kBF16, kF16 };

constexpr std::size_t bytes_of(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }
constexpr const char* name_of(DType dtype) {
  return dtype == DType::kF32 ? "f32" : dtype == DType::kBF16 ? "bf16" : "f16";
}

// How a weight is stored. All are read as f32. The first three are DType's, in its order.
enum class WeightType : std::uint8_t {
  kF32,
  kBF16,
  kF16,
  kInt8,    // -127..127 times an f32 of the output
  kInt4,    // -8..7 times a bf16 of each 32 inputs of the output
  kW8A8,    // kInt8's numbers, multiplied in integers: the other factor is quantised too
  kW4A8,    // kInt4's likewise
  kW16A16,  // kBF16's numbers, multiplied by bf16: the other factor is rounded too
  kFp8,     // e4m3fn times an f32 of the output
};
inline constexpr WeightType kAllWeightTypes[] = {WeightType::kF32,  WeightType::kBF16,   WeightType::kF16,
                                                 WeightType::kInt8, WeightType::kInt4,   WeightType::kW8A8,
                                                 WeightType::kW4A8, WeightType::kW16A16, WeightType::kFp8};

constexpr const char* name_of(WeightType type) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "int8", "int4", "w8a8", "w4a8", "w16a16", "fp8"};
  return kNames[static_cast<int>(type)];
}
// A scale for each output; types of groups have theirs among the numbers.
constexpr bool has_output_scales(WeightType type) {
  return type == WeightType::kInt8 || type == WeightType::kW8A8 || type == WeightType::kFp8;
}

// What packing does to a checkpoint's numbers; of those named by two, what linear() does to its input too.
enum class Quantize : std::uint8_t { kNone, kInt8, kInt4, kW8A8, kW4A8, kW16A16, kFp8 };
// As which they can be had: kNone is how a checkpoint is without them.
inline constexpr Quantize kAllQuantized[] = {Quantize::kInt8, Quantize::kInt4,   Quantize::kW8A8,
                                             Quantize::kW4A8, Quantize::kW16A16, Quantize::kFp8};

constexpr WeightType weight_type(DType stored, Quantize quantize) {
  if (quantize == Quantize::kInt8) return WeightType::kInt8;
  if (quantize == Quantize::kInt4) return WeightType::kInt4;
  if (quantize == Quantize::kW8A8) return WeightType::kW8A8;
  if (quantize == Quantize::kW4A8) return WeightType::kW4A8;
  if (quantize == Quantize::kW16A16) return WeightType::kW16A16;
  if (quantize == Quantize::kFp8) return WeightType::kFp8;
  return static_cast<WeightType>(stored);
}

inline constexpr std::uint32_t kGroupTokens = 16;  // positions that are quantised, kept or dropped together
inline constexpr std::uint32_t kSpanTokens = 256;  // positions that attention reduces as one unit

// How K and V are stored. All are read as f32.
enum class KvType : std::uint8_t {
  kF32,
  kBF16,  // round to nearest even
  kFp8,   // e4m3fn, to nearest even and no further than 448, no scale
  kInt8,  // -127..127 times an f32, one for a token's K and one for its V in each head
  kInt4,  // in groups of 16 positions: K per channel, V per token; see Ops::rope_store
};
inline constexpr KvType kAllKvTypes[] = {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4};

constexpr const char* name_of(KvType type) {
  constexpr const char* kNames[] = {"f32", "bf16", "fp8", "int8", "int4"};
  return kNames[static_cast<int>(type)];
}

// A borrowed row-major matrix [N, K] in host memory, in the checkpoint's own bits (little endian; may be unaligned).
struct HostMatrix {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
};

// Matrices that share their input, packed together: y = x · [W0; W1; …]ᵀ + bias. Each keeps its checkpoint's bits, or is
// quantised: see Ops::linear.
class Weight {
 public:
  virtual ~Weight() = default;
  virtual std::uint32_t n() const = 0;  // outputs of all its matrices
  virtual std::uint32_t k() const = 0;  // inputs
  virtual WeightType type() const = 0;
  // All of it as packed, in host memory: what Ops::adopt() makes a weight of again.
  virtual std::span<const std::byte> packed() const = 0;
  virtual std::size_t bytes() const { return packed().size(); }
  // Nobody will ask for packed() any more: ops that have a copy in memory of their own give the host's back.
  virtual void forget_packed() {}
};

// What decides, with the backend's layout, how many bytes a packed weight has.
struct WeightShape {
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  WeightType type = WeightType::kF32;
  bool has_bias = false;
};

// A vector in f32: a norm's scale.
class Vector {
 public:
  virtual ~Vector() = default;
  virtual std::uint32_t size() const = 0;
};

// cos and sin of every position: [positions, D/2] each, attention scaling multiplied in.
class RopeTable {
 public:
  virtual ~RopeTable() = default;
  virtual std::uint32_t positions() const = 0;
};

// A row buffer [max_rows, width] of f32. Ops use its first T rows.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::uint32_t max_rows() const = 0;
  virtual std::uint32_t width() const = 0;
};

struct KvShape {
  std::uint32_t num_layers = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t block_tokens = 16;  // P, a multiple of 16
  std::uint32_t num_blocks = 0;
  KvType type = KvType::kF32;
  std::uint32_t num_extra_layers = 0;  // of a draft model, in the same blocks: layers num_layers ..
  std::uint32_t tail_bytes = 0;        // that every block carries along, for whoever owns it
  std::uint32_t num_open_groups = 0;   // int4: places for newest, unfinished groups, one for each sequence that runs

  std::uint32_t all_layers() const { return num_layers + num_extra_layers; }
};

// K and V of every block and layer. Contents are undefined until a row stores them; nothing undefined is ever read.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual const KvShape& shape() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::size_t block_bytes() const = 0;  // of one block: all layers and its byte tail
};

}  // namespace quire::backend
