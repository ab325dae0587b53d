// Makes a device's objects: packed weights, vectors, RoPE tables, row buffers and the KV cache.
// Owner   the caller owns what is made; nothing may outlive the backend.
// Thread  start.
// Fails   StartError: out of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/backend/experts.h"
#include "core/backend/tensors.h"

namespace quire::backend {

class Factory {
 public:
  virtual ~Factory() = default;

  // True if weights of that format can be made: of a checkpoint's own, or of --quantize.
  virtual bool takes(Format format) const { return !format.is_blocks(); }
  // True if linear layers of that format round their input to bf16, though it does not ask for that.
  virtual bool rounds_rows(Format /*format*/) const { return false; }
  // Packs matrices into one weight. biases: empty, or one f32 span per matrix (an empty span: no bias for that matrix).
  // Quantised from the matrices' values, s a scale, q a code; w8a8 is packed as int8, w4a8 as int4, w16a16 to the
  // nearest bf16, ties to even:
  //   int8  s[n] = max over k of |w[n,k]| / 127 in f32;  q[n,k] = w / s to the nearest integer, ties to even, in
  //         -127..127
  //   fp8   s[n] = max over k of |w[n,k]| / 448 in f32;  q[n,k] = w / s to the nearest e4m3fn (core/base/float_bits.h)
  //   int4  per group g of 32 inputs, counted from the first: s[n,g] = the element of largest magnitude (the first of
  //         equals) / -8, to the nearest bf16;  q[n,k] = w / s to the nearest integer, ties to even, in -8..7
  // Blocks, times f32 or int8, keep the codes and scales of the matrices' own blocks, which have to be of that type.
  // If s is 0, q is 0. If an element is NaN or infinite, s is NaN and q is 0, so that the fault stays visible.
  virtual std::unique_ptr<Weight> pack(std::span<const HostMatrix> matrices,
                                       std::span<const std::span<const float>> biases,
                                       std::optional<Format> quantize = std::nullopt) = 0;
  // Name and version of pack()'s memory layout, as in "cpu panels/1"; the version changes with every layout change.
  virtual std::string layout() const = 0;
  // A weight from the packed() bytes of a weight that pack() made in this or another process. The bytes are not copied;
  // `owner` keeps them alive. Null if this layout needs another number of bytes for the shape, or if the bytes are not
  // aligned to a cache line.
  virtual std::unique_ptr<Weight> adopt(const WeightShape& shape, std::span<const std::byte> packed,
                                        std::shared_ptr<const void> owner) = 0;
  // Calls part(i) for every i in [0, count), distributed over this device's host threads.
  virtual void for_parts(std::uint32_t count, const std::function<void(std::uint32_t)>& part) = 0;
  virtual std::unique_ptr<Vector> upload(std::span<const float> values) = 0;
  // cosines, sines: [positions, half] row major.
  virtual std::unique_ptr<RopeTable> upload_rope(std::span<const float> cosines, std::span<const float> sines,
                                                 std::uint32_t half) = 0;
  virtual std::unique_ptr<Buffer> make_buffer(std::uint32_t max_rows, std::uint32_t width) = 0;
  virtual std::unique_ptr<KvCache> make_kv(const KvShape& shape) = 0;
  // StartError: the device has no kernels for mixtures of experts.
  virtual std::unique_ptr<Routes> make_routes(std::uint32_t max_rows, std::uint32_t num_experts, std::uint32_t top_k);
};

}  // namespace quire::backend
