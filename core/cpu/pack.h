// Weight formats of the CPU backend: for each its panels (isa/kernels.h), how they are packed from row-major matrices
// and read, and the kernel that multiplies by them. A new format is one more row of the table in pack.cc.
// Thread  pack_weight: any, outside steps; the team shares the panels. The others: any; pure.
// Fails   StartError: out of memory, or a format without kernels, by its name. Matrices of different k or format:
//         CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/backend/tensors.h"
#include "core/cpu/isa/kernels.h"

namespace quire::cpu {

class PackedWeight;
class Team;

// Inputs that are packed for all 16 outputs of a panel before the next ones: that part of the panel stays in L1.
inline constexpr std::uint32_t kPartInputs = 256;

// Inputs [first, first + count) of one output, as the checkpoint stores them, and the output's lane of a panel.
struct LanePart {
  const std::byte* source = nullptr;  // of input `first`; may be unaligned
  backend::Format stored;
  float scale = 1.0f;     // of the output, if the format has such scales
  std::size_t first = 0;  // a multiple of kPartInputs
  std::size_t count = 0;  // <= kPartInputs
  std::uint32_t lane = 0;
  std::byte* panel = nullptr;  // zeroed before
};

struct FormatKernels {
  backend::Format format;
  Gemm gemm;
  std::size_t (*panel_bytes)(std::uint32_t k);
  void (*pack)(const LanePart& part);
  // An output's inputs [0, out.size()) as f32: element times scale. `scale`: of the output, if there are such scales.
  void (*unpack)(const std::byte* panel, std::uint32_t lane, float scale, std::span<float> out);
  const BlockPanel* blocks = nullptr;  // of blocks
};

std::span<const FormatKernels> format_kernels();  // the same at every call
const FormatKernels& kernels_of(backend::Format format);

// bias: empty, or one span per matrix (an empty one: no bias for that matrix).
std::unique_ptr<PackedWeight> pack_weight(std::span<const backend::HostMatrix> matrices,
                                          std::span<const std::span<const float>> biases,
                                          std::optional<backend::Format> quantize, Team& team);

// out[i] = w[row, i] widened to f32, i in [0, k); code * scale if the weight is quantised.
void unpack_row(const PackedWeight& w, std::uint32_t row, float* out);

}  // namespace quire::cpu
