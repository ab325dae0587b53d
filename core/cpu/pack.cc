#include "core/cpu/pack.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/backend/weights/quantize.h"
#include "core/base/check.h"
#include "core/base/float_bits.h"
#include "core/base/start_error.h"
#include "core/cpu/blocks/block_panels.h"
#include "core/cpu/blocks/float_panels.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/team/parallel_for.h"
#include "core/cpu/tensors.h"

namespace quire::cpu {
namespace {

using backend::Format;
using backend::HostMatrix;

static_assert(kPartInputs % (2 * kInt4Group) == 0);

template <std::size_t kStep, std::size_t kBits>
std::size_t panel_bytes(std::uint32_t k) {
  return (k + kStep - 1) / kStep * kStep * kLanes * kBits / 8;
}

// The part's inputs as f32.
struct Widened {
  explicit Widened(const LanePart& part) : w(values, part.count) { backend::widen(part.source, part.stored, w); }
  float values[kPartInputs];
  std::span<float> w;
};

// ---- f32, f16: an input's 16 elements side by side

// Copies elements into a lane, element i to out[i * 16]. T is the element or a pair of them, in the order of the panel.
template <typename T>
void fill_lane(const std::byte* source, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i, source += sizeof(T)) std::memcpy(out + i * kLanes, source, sizeof(T));
}

template <typename Bits, Format kFormat>
void pack_elements(const LanePart& part) {
  CHECK(part.stored == kFormat);
  fill_lane(part.source, part.count, reinterpret_cast<Bits*>(part.panel) + part.first * kLanes + part.lane);
}

void unpack_f32(const std::byte* panel, std::uint32_t lane, float, std::span<float> out) {
  const auto* values = reinterpret_cast<const float*>(panel) + lane;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[i * kLanes];
}
void unpack_f16(const std::byte* panel, std::uint32_t lane, float, std::span<float> out) {
  const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + lane;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f32_of_f16(values[i * kLanes]);
}

// ---- bf16, w16a16: in pairs

// Place of input i of an output, relative to the output's first.
std::size_t bf16_at(std::size_t i) { return i / 2 * 2 * kLanes + i % 2; }

void pack_bf16(const LanePart& part) {
  if (part.stored == Format::kBF16) {
    auto* words = reinterpret_cast<std::uint32_t*>(part.panel) + part.first / 2 * kLanes + part.lane;
    fill_lane(part.source, part.count / 2, words);
    if (part.count % 2 != 0) {  // the high half stays 0
      std::memcpy(words + part.count / 2 * kLanes, part.source + (part.count - 1) * 2, 2);
    }
    return;
  }
  const Widened from(part);
  auto* halves = reinterpret_cast<std::uint16_t*>(part.panel) + 2 * part.lane;
  for (std::size_t i = 0; i < from.w.size(); ++i) halves[bf16_at(part.first + i)] = bf16_of_f32(from.w[i]);
}

void unpack_bf16(const std::byte* panel, std::uint32_t lane, float, std::span<float> out) {
  const auto* values = reinterpret_cast<const std::uint16_t*>(panel) + 2 * lane;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f32_of_bf16(values[bf16_at(i)]);
}

// ---- int8, fp8: an input's 16 codes side by side. w8a8: four inputs of an output in a word

std::size_t byte_at(std::size_t i, std::uint32_t lane) { return i * kLanes + lane; }
std::size_t byte_in_words_at(std::size_t i, std::uint32_t lane) { return (i / 4 * kLanes + lane) * 4 + i % 4; }

using ByteAt = std::size_t (*)(std::size_t i, std::uint32_t lane);

template <Format kFormat, ByteAt kAt>
void pack_bytes(const LanePart& part) {
  std::byte codes[kPartInputs];
  if (backend::keeps_codes(part.stored, kFormat)) {
    std::memcpy(codes, part.source, part.count);
  } else {
    backend::output_codes(kFormat, Widened(part).w, part.scale, codes);
  }
  for (std::size_t i = 0; i < part.count; ++i) part.panel[kAt(part.first + i, part.lane)] = codes[i];
}

template <ByteAt kAt>
void unpack_int8(const std::byte* panel, std::uint32_t lane, float scale, std::span<float> out) {
  const auto* codes = reinterpret_cast<const std::int8_t*>(panel);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(codes[kAt(i, lane)]) * scale;
}
void unpack_fp8(const std::byte* panel, std::uint32_t lane, float scale, std::span<float> out) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(panel);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f32_of_fp8(codes[byte_at(i, lane)]) * scale;
}

// ---- int4, w4a8: lines of scales and of codes

constexpr std::size_t kInt4Inputs = 2 * kInt4Group;                    // that share a line of scales
constexpr std::size_t kInt4Words = kLanes + kInt4Inputs / 8 * kLanes;  // of the line and of its codes

std::size_t int4_panel_bytes(std::uint32_t k) {
  return panel_bytes<8, 4>(k) + panel_bytes<kInt4Inputs, 8>(k) / kInt4Inputs * sizeof(std::uint32_t);
}

void pack_int4(const LanePart& part) {
  const Widened from(part);
  for (std::size_t start = 0; start < from.w.size(); start += kInt4Group) {
    const auto group = from.w.subspan(start, std::min<std::size_t>(kInt4Group, from.w.size() - start));
    const std::size_t k = part.first + start;
    auto* line = reinterpret_cast<std::uint32_t*>(part.panel) + k / kInt4Inputs * kInt4Words + part.lane;
    const std::uint32_t half = k % kInt4Inputs / kInt4Group;
    const std::uint16_t scale = backend::int4_scale(group);
    *line |= std::uint32_t{scale} << 16 * half;
    std::int8_t codes[kInt4Group];
    backend::int4_codes(group, scale, codes);
    std::uint32_t* words = line + (1 + half * kInt4Group / 8) * kLanes;
    for (std::size_t i = 0; i < group.size(); ++i) {
      words[i / 8 * kLanes] |= static_cast<std::uint32_t>(codes[i] & 15) << kInt4Shift[i % 8];
    }
  }
}

void unpack_int4(const std::byte* panel, std::uint32_t lane, float, std::span<float> out) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(panel) + lane;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t* line = words + i / kInt4Inputs * kInt4Words;
    const std::size_t at = i % kInt4Inputs;
    const std::uint32_t nibble = line[(1 + at / 8) * kLanes] << (28 - kInt4Shift[at % 8]);
    const auto scale = static_cast<std::uint16_t>(line[0] >> 16 * (at / kInt4Group));
    out[i] = static_cast<float>(static_cast<std::int32_t>(nibble) >> 28) * f32_of_bf16(scale);
  }
}

// ---- blocks, as a checkpoint has them

template <backend::BlockType kType>
constexpr bool kInFloats = backend::layout_of(kType).is_in_floats();

template <backend::BlockType kType>
std::size_t bytes_of_block_panel(std::uint32_t k) {
  return kInFloats<kType> ? float_panel_bytes(kType, k) : block_panel_bytes(kType, k);
}
template <backend::BlockType kType>
void pack_blocks(const LanePart& part) {
  CHECK(part.stored == Format::of_blocks(kType));
  const auto pack = kInFloats<kType> ? pack_float_lane : pack_block_lane;
  pack(kType, part.source, part.first, static_cast<std::uint32_t>(part.count), part.lane, part.panel);
}
template <backend::BlockType kType>
void unpack_blocks(const std::byte* panel, std::uint32_t lane, float scale, std::span<float> out) {
  const auto unpack = kInFloats<kType> ? unpack_float_lane : unpack_block_lane;
  unpack(kType, panel, lane, out);
  if (has_output_scales(Format::of_blocks(kType))) {
    for (float& number : out) number *= scale;
  }
}

template <std::size_t... kTypes>
std::vector<FormatKernels> formats_of_blocks(std::index_sequence<kTypes...>) {
  std::vector<FormatKernels> formats;
  const auto add = [&]<backend::BlockType kType>(std::integral_constant<backend::BlockType, kType>, bool in_integers) {
    if (in_integers && kInFloats<kType>) return;
    const auto activation = in_integers ? Format::Activation::kInt8 : Format::Activation::kF32;
    const Gemm gemm = kInFloats<kType> ? float_gemm(kType) : block_gemm(kType, in_integers);
    formats.push_back({Format::of_blocks(kType, activation), gemm, bytes_of_block_panel<kType>, pack_blocks<kType>,
                       unpack_blocks<kType>, &block_panel(kType)});
  };
  for (const bool in_integers : {false, true}) {
    (add(std::integral_constant<backend::BlockType, static_cast<backend::BlockType>(kTypes)>{}, in_integers), ...);
  }
  return formats;
}

constexpr FormatKernels kPlainAndQuantized[] = {
    {Format::kF32, kGemmF32, panel_bytes<1, 32>, pack_elements<std::uint32_t, Format::kF32>, unpack_f32},
    {Format::kBF16, kGemmBF16, panel_bytes<2, 16>, pack_bf16, unpack_bf16},
    {Format::kF16, kGemmF16, panel_bytes<1, 16>, pack_elements<std::uint16_t, Format::kF16>, unpack_f16},
    {Format::kInt8, kGemmInt8, panel_bytes<4, 8>, pack_bytes<Format::kInt8, byte_at>, unpack_int8<byte_at>},
    {Format::kInt4, kGemmInt4, int4_panel_bytes, pack_int4, unpack_int4},
    {Format::kW8A8, kGemmW8A8, panel_bytes<4, 8>, pack_bytes<Format::kW8A8, byte_in_words_at>,
     unpack_int8<byte_in_words_at>},
    {Format::kW8A8PerRow, kGemmW8A8, panel_bytes<4, 8>, pack_bytes<Format::kW8A8, byte_in_words_at>,
     unpack_int8<byte_in_words_at>},
    {Format::kW4A8, kGemmW4A8, int4_panel_bytes, pack_int4, unpack_int4},
    {Format::kW16A16, kGemmW16A16, panel_bytes<2, 16>, pack_bf16, unpack_bf16},
    {Format::kFp8, kGemmFp8, panel_bytes<4, 8>, pack_bytes<Format::kFp8, byte_at>, unpack_fp8},
};

// Rows of the concatenated matrices.
struct Rows {
  std::span<const HostMatrix> matrices;
  std::size_t row_bytes;

  struct Row {
    const std::byte* source;
    float factor;
  };
  Row row(std::uint32_t output) const {
    std::size_t matrix = 0;
    while (output >= matrices[matrix].n) output -= matrices[matrix++].n;
    return {static_cast<const std::byte*>(matrices[matrix].data) + output * row_bytes, matrices[matrix].factor};
  }
};

}  // namespace

std::span<const FormatKernels> format_kernels() {
  static const std::vector<FormatKernels> kAll = [] {
    std::vector<FormatKernels> all(std::begin(kPlainAndQuantized), std::end(kPlainAndQuantized));
    const std::vector<FormatKernels> blocks =
        formats_of_blocks(std::make_index_sequence<std::size(backend::kBlockLayouts)>());
    all.insert(all.end(), blocks.begin(), blocks.end());
    return all;
  }();
  return kAll;
}

bool takes(Format format) {
  return std::ranges::find(format_kernels(), format, &FormatKernels::format) != format_kernels().end();
}

const FormatKernels& kernels_of(Format format) {
  if (!takes(format)) throw StartError("the CPU has no kernels for weights in " + name_of(format));
  return *std::ranges::find(format_kernels(), format, &FormatKernels::format);
}

std::unique_ptr<PackedWeight> pack_weight(std::span<const HostMatrix> matrices,
                                          std::span<const std::span<const float>> biases,
                                          std::optional<Format> quantize, Team& team) {
  CHECK(!matrices.empty());
  CHECK(biases.empty() || biases.size() == matrices.size());
  const std::uint32_t k = matrices.front().k;
  const Format stored = matrices.front().format;
  CHECK_GT(k, 0u);
  std::uint32_t n = 0;
  bool has_bias = false;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    CHECK_EQ(matrices[i].k, k);
    CHECK(matrices[i].format == stored);
    CHECK(std::ranges::equal(matrices[i].columns, matrices.front().columns));
    CHECK(matrices[i].factor == 1.0f || has_own_factor(quantize.value_or(stored)));
    CHECK_GT(matrices[i].n, 0u);
    n += matrices[i].n;
    if (!biases.empty() && !biases[i].empty()) {
      CHECK_EQ(biases[i].size(), matrices[i].n);
      has_bias = true;
    }
  }

  const Format format = quantize.value_or(stored);
  CHECK(!backend::has_stored_scales(stored) || backend::keeps_codes(stored, format));
  const std::span<const std::uint32_t> columns = matrices.front().columns;
  CHECK(columns.empty() || columns.size() == k);
  auto weight = std::make_unique<PackedWeight>(backend::WeightShape{n, k, format, has_bias, !columns.empty()});
  std::ranges::copy(columns, weight->columns());
  std::uint32_t next = 0;
  for (std::size_t i = 0; has_bias && i < matrices.size(); next += matrices[i].n, ++i) {
    std::copy(biases[i].begin(), biases[i].end(), weight->bias() + next);
  }

  const Rows rows{matrices, backend::row_bytes(stored, k)};
  const auto pack = weight->kernels().pack;
  set_float_mode();  // the mode of the team's threads
  team.for_chunks(weight->num_panels(), [&](std::uint32_t panel, std::uint32_t) {
    const std::uint32_t lanes = std::min(kLanes, n - panel * kLanes);
    float* scales = weight->scales() == nullptr ? nullptr : weight->scales() + panel * kLanes;
    const std::byte* sources[kLanes];
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const Rows::Row row = rows.row(panel * kLanes + lane);
      sources[lane] = row.source;
      if (scales == nullptr) continue;
      scales[lane] = format.is_blocks() ? row.factor : backend::output_scale(format, row.source, stored, k);
    }
    for (std::uint32_t first = 0; first < k; first += kPartInputs) {
      const std::uint32_t count = std::min(k - first, kPartInputs);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        pack({.source = sources[lane] + backend::stored_bytes(stored, first),
              .stored = stored,
              .scale = scales == nullptr ? 1.0f : scales[lane],
              .first = first,
              .count = count,
              .lane = lane,
              .panel = weight->panel(panel)});
      }
    }
  });
  return weight;
}

void unpack_row(const PackedWeight& w, std::uint32_t row, float* out) {
  const float scale = w.scales() == nullptr ? 1.0f : w.scales()[row];
  w.kernels().unpack(w.panel(row / kLanes), row % kLanes, scale, {out, w.k()});
  if (w.columns() == nullptr) return;
  const std::vector<float> ordered(out, out + w.k());
  for (std::uint32_t i = 0; i < w.k(); ++i) out[w.columns()[i]] = ordered[i];
}

}  // namespace quire::cpu
