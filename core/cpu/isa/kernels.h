// Table of kernels, one per instruction set: raw pointers in, raw pointers out, the same bits from every table.
// Each table is one file (kernels_scalar.cc, kernels_avx2.cc, ..., kernels_avx512bf16.cc) compiled with its own -m
// flags. The VNNI table is a copy of the AVX-512 table with the integer products replaced; the BF16 table is a copy of
// the VNNI table with the bf16 products replaced. The files put everything into an anonymous namespace and include
// nothing but <immintrin.h>, <cstdint>, <cstddef> and the constants of exp: an inline function of the standard library
// compiled for AVX-512 could otherwise be the copy that the linker keeps for the whole program.
//
// Panel   16 outputs in lanes, k running:
//           f32, f16   [K][16]
//           bf16       [ceil(K/2)][16][2]: 32-bit word j of a pair of k's holds output j at k (low half) and at k+1
//                      (high half), so that one shift and one AND give two vectors, for any vector width. The odd half
//                      after an odd K is zero and never multiplied. vdpbf16ps takes this layout; w16a16 is bf16.
//           int8, fp8  [K up to a multiple of 4][16]; scales apart, one per output
//           int4       for each 64 k's a line of 16 32-bit words: word j has the bf16 scales of output j, for the first
//                      32 k's (low half) and for the others. Then for each 8 k's a line of 16 words: word j has the
//                      codes of output j, the first four k's in the low halves of its bytes, the others in the high
//                      ones. Lines end with K. w4a8 is int4.
//           w8a8       for each 4 k's a line of 16 words: word j has the codes of output j, a byte each; scales apart
//                      as int8's. (With int8 in this order, too, 12 rows on a Zen 4 core with AVX2 took 38 G products/s
//                      instead of 55, as a code takes one instruction more to widen.)
//           blocks     of a GGUF file: core/cpu/blocks/block_panels.h
//         A group of attention's K is a panel, its tokens the outputs; in fewer bits as in kv_codec.h.
// Order   every output is one lane and one accumulator, fma over k ascending. Rows and panels share loads, not sums.
// Thread  any: no state.
// Source  ours; outputs in lanes: packed B of BLIS (Van Zee & van de Geijn 2015).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/kv_constants.h"

namespace quire::cpu {

inline constexpr std::uint32_t kLanes = 16;
inline constexpr std::uint32_t kInt4Group = 32;    // inputs that share a scale
inline constexpr std::uint32_t kCodedGroup = 256;  // inputs of a row that share a scale, if rows are quantised
inline constexpr std::uint32_t kInt4Shift[8] = {0, 8, 16, 24, 4, 12, 20, 28};  // of the code of k + s in its word
// An e4m3fn moved up by 7 bits and read as f16 is 2^8 too small: the bits to keep, a NaN after the move, and the
// difference from that to NaN in f16.
inline constexpr std::int16_t kFp8Bits = -0x4001;
inline constexpr std::int16_t kFp8NaN = 0x3f80;
inline constexpr std::int16_t kFp8ToF16NaN = 0x3e80;
inline constexpr std::uint32_t kSpan = kSpanTokens;           // positions that attention reduces as one unit
inline constexpr std::uint32_t kSpanGroups = kSpan / kLanes;  // groups of 16 tokens in a span
inline constexpr std::uint32_t kGroupsAhead = 4;              // prefetch distance of attention's groups

// Scale and start values of 256 inputs of a quantised row; their codes are apart. start8 and start4 are what sums over
// the 256 inputs, or over 32 of them, begin with. They are private to quantize_row and gemm of one table: an
// instruction that takes unsigned codes needs a correction.
struct CodedGroup {
  float scale;
  std::int32_t start8;
  std::int32_t start4[kCodedGroup / kInt4Group];
};
// Scale of 32 inputs of a row that is quantised for blocks; then, for the first 16 of them, the others and all 32: what
// sums of products begin with, as in CodedGroup, and the sum of the codes times the scale; and the negated sum of all.
struct alignas(32) CodedRun {
  float scale;
  std::int32_t starts[3];
  float scaled_sums[3];
  float minus_sum;  // of all 32 codes
};
// Rows as quantize_row() leaves them, padded to whole groups with codes of 0; or as quantize_runs() does; or as
// round_row() does, with codes alone. The bytes that round_row() writes are private to it and gemm of one table.
struct CodedRows {
  const std::int8_t* codes = nullptr;
  std::size_t code_stride = 0;  // bytes
  const CodedGroup* groups = nullptr;
  std::size_t group_stride = 0;
  const CodedRun* runs = nullptr;  // instead of groups, if the rows are for blocks
  std::size_t run_stride = 0;
};

// Storage of the scales of a panel of blocks: BlockScales.
enum class PanelScales : std::uint8_t { kF16, kBF16, kIntegers, kF32 };
// Numbers of its codes: v = code - zero, less the group's if there are zeros; for kernels with a table, values[code] -
// zero, or floats[code].
struct BlockPanel {
  PanelScales scales = PanelScales::kF16;
  bool has_minima = false;
  bool has_zeros = false;
  bool is_wide = false;           // codes, or values, have 8 bits, and zero is 128
  std::uint8_t groups_shift = 0;  // of kF32: a scale is that of 2^groups_shift groups
  std::uint16_t inputs = 0;       // of kF32, that share a scale
  std::int32_t zero = 0;
  std::uint8_t values[16] = {};
  const float* floats = nullptr;
};

// out[r, n] = fma over k ascending of x[r, k] * w[n, k], from +0; then * scales[n] if scales are given; then + bias[n]
// if a bias is. w: for int8 and fp8 the code, for int4 the code times its group's scale, for blocks their number. w8a8,
// w4a8, w16a16 and blocks in integers take `coded` instead of x, by the equations of StepOps::multiply.
// Shape   x [rows, k] and out [rows, n], strides in floats; panel i covers outputs [16i, 16i + 16).
struct GemmArgs {
  const float* x = nullptr;
  std::size_t x_stride = 0;
  CodedRows coded;
  std::uint32_t rows = 0;
  std::uint32_t k = 0;
  const void* panels = nullptr;  // panel i at panels + i * panel_bytes
  std::size_t panel_bytes = 0;
  // If not null, panel i is at panel_list[i] instead; behind the last stand kGroupsAhead more, read next, or null.
  const void* const* panel_list = nullptr;
  const BlockPanel* blocks = nullptr;  // of panels of blocks
  std::uint32_t n = 0;
  const float* scales = nullptr;  // [ceil(n/16) * 16]
  const float* bias = nullptr;    // [ceil(n/16) * 16]
  float* out = nullptr;
  std::size_t out_stride = 0;
};

// o[r, :] = fma over j in [first, last) ascending of e[r, j] * v[j, :], on top of what o holds.
// Shape   e [rows, kSpan], o [rows, width], strides in floats. Token j of the span is row j % 16 of groups[j / 16];
//         groups has kSpanGroups + kGroupsAhead entries, the last ones to be read next, or null.
struct WeighArgs {
  const float* e = nullptr;
  std::size_t e_stride = 0;
  std::uint32_t rows = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const void* const* groups = nullptr;
  std::size_t row_bytes = 0;  // behind the 16 rows of a group are their scales, if the type has any
  std::uint32_t width = 0;    // a multiple of 16
  float* o = nullptr;
  std::size_t o_stride = 0;
};

// Rows [16] of `count` numbers as a panel [count][16].
struct TurnArgs {
  const void* rows = nullptr;  // padded to 16 numbers
  std::size_t row_bytes = 0;
  std::uint32_t count = 0;
  const float* scales = nullptr;  // int8: [16]
  float* panel = nullptr;
};

// Places in Kernels::gemm, one for each order of a panel's numbers. Blocks: by the bits of a code, or with a table of
// values; then the same in integers.
enum Gemm : std::uint8_t {
  kGemmF32,
  kGemmBF16,
  kGemmF16,
  kGemmInt8,
  kGemmInt4,
  kGemmW8A8,
  kGemmW4A8,
  kGemmW16A16,
  kGemmFp8,
  kGemmFloats8,  // blocks whose codes stand for f32: e4m3fn, or of 4 bits with a table
  kGemmFloats4,
  kGemmBlocks2,
  kGemmBlocks3,
  kGemmBlocks4,
  kGemmBlocks5,
  kGemmBlocks6,
  kGemmBlocks8,
  kGemmBlocksOfTable,
  kGemmBlocksOfTable16,  // in groups of 16
  kGemmBlocks2A8,
  kGemmBlocks3A8,
  kGemmBlocks4A8,
  kGemmBlocks5A8,
  kGemmBlocks6A8,
  kGemmBlocks8A8,
  kGemmBlocksOfTableA8,
  kGemmBlocksOfTable16A8,
  kNumGemms,
};

struct Kernels {
  const char* name;
  std::uint32_t tile_rows;    // rows that share one load of a weight
  std::uint32_t tile_panels;  // panels that are worth giving to a worker together

  void (*gemm[kNumGemms])(const GemmArgs& args);
  // A row of n for w8a8 and w4a8: codes and, for each 256 of them, a group (equations: StepOps::multiply).
  // has_one_scale: all groups have the scale of the row.
  void (*quantize_row)(const float* x, std::size_t n, bool has_one_scale, std::int8_t* codes, CodedGroup* groups);
  // A row of n, a multiple of 32, for such blocks: codes and, for each 32 of them, a run.
  void (*quantize_runs)(const float* x, std::size_t n, const BlockPanel& blocks, std::int8_t* codes, CodedRun* runs);
  // A row of n for w16a16; writes at most 4 * (n + 1) bytes.
  void (*round_row)(const float* x, std::size_t n, std::int8_t* out);
  // Attention, by backend::KvType: gemm over K in a panel_list, and sums of V rows. weigh: at most tile_rows rows.
  void (*score[5])(const GemmArgs& args);
  void (*weigh[5])(const WeighArgs& args);
  // Rows of a latent as K, by backend::KvType but int4: numbers in f32; bf16 as they are, count / 2 pairs.
  void (*turn[4])(const TurnArgs& args);

  // z[j] *= scale, then max = max z[j], z[j] = exp(z[j] - max), sum = sum16 of z[j] by j mod 16; j in [first, last).
  void (*softmax)(float* z, std::uint32_t first, std::uint32_t last, float scale, float* max, float* sum);
  // Online softmax, one row: a = exp(max - m), b = exp(span_max - m), m = max(max, span_max);
  // sum = fma(sum, a, span_sum * b); o = fma(o, a, span_o * b); max = m.
  void (*merge)(float* max, float* sum, float* o, float span_max, float span_sum, const float* span_o,
                std::size_t width);
  // out[i] = o[i] * (1 / sum).
  void (*divide)(const float* o, float sum, std::size_t n, float* out);

  // out[i] = (x[i] * r) * scale[i], r = 1 / sqrt(sum16(x²) / n + eps). out may be x.
  void (*norm)(const float* x, const float* scale, float eps, std::size_t n, float* out);
  // out[i] = ((x[i] - m) * r) * scale[i], m = sum16(x) / n, r = 1 / sqrt(sum16((x - m)²) / n + eps); with a bias
  // fma((x[i] - m) * r, scale[i], bias[i]). out may be x.
  void (*layer_norm)(const float* x, const float* scale, const float* bias, float eps, std::size_t n, float* out);
  // Rotation by halves, in place: lo' = fma(-hi, sin, lo * cos), hi' = fma(lo, sin, hi * cos).
  void (*rotate)(float* head, const float* cosines, const float* sines, std::size_t half);
  // By backend::Activation: out[i] = act(gate[i]), or act(gate[i]) * up[i] if up is not null.
  void (*activate[5])(const float* gate, const float* up, std::size_t n, float* out);
  // The sixth activation: `numbers` are p, n, b and e.
  void (*xielu)(const float* x, const float* numbers, std::size_t n, float* out);
  // Gates and ups with limits: StepOps::linear_by_expert(). `numbers` are alpha and the limit.
  void (*clamped)(const float* gate, const float* up, const float* numbers, std::size_t n, float* out);
  // x[i] = fma(y[i], scale, x[i]).
  void (*add)(float* x, const float* y, float scale, std::size_t n);
  // x[i] = x[i] * y[i].
  void (*multiply)(float* x, const float* y, std::size_t n);
  // x[i] = x[i] * scale; with a cap other than 0, cap * tanh((x[i] * scale) / cap).
  void (*rescale)(float* x, float scale, float cap, std::size_t n);
  // x[i] = min(limit, max(-limit, x[i])).
  void (*clip)(float* x, float limit, std::size_t n);
  // x[i] = max(0, x[i] - limit).
  void (*cut_below)(float* x, float limit, std::size_t n);
  // sum16(x), or sum16((x - center)²).
  float (*sum)(const float* x, float center, bool squares, std::size_t n);
  // The highest x[i]; +inf or NaN if one of them is NaN or +inf. -inf if n is 0.
  float (*highest)(const float* x, std::size_t n);
  // x[i] = exp(x[i]).
  void (*exp_each)(float* x, std::size_t n);
};

const Kernels* kernels_scalar();
const Kernels* kernels_avx2();        // AVX2, FMA, F16C
const Kernels* kernels_avx512();      // AVX-512 F, BW, DQ, VL
const Kernels* kernels_avx512vnni();  // and VNNI
const Kernels* kernels_avx512bf16();  // and BF16

}  // namespace quire::cpu
