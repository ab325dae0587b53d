// One table of kernels per instruction set: raw pointers in, raw pointers out, the same bits from every table.
// Each table is one file (kernels_scalar.cc, kernels_avx2.cc, ..., kernels_avx512bf16.cc) compiled with its own -m
// flags. The VNNI table is a copy of the AVX-512 table with the integer products replaced; the BF16 table is a copy of
// the VNNI table with the bf16 products replaced. The files put everything into an anonymous namespace and include
// nothing but <immintrin.h>, <cstdint>, <cstddef> and the constants of exp: an inline function of the standard library
// compiled for AVX-512 could otherwise be the copy that the linker keeps for the whole program.
//
// Panel   16 outputs in lanes, k running: f32 and f16 [K][16]; bf16 [ceil(K/2)][16][2], so that 32-bit word j of a pair
//         of k's holds output j at k (low half) and at k+1 (high half): one shift and one AND give two vectors, for
//         any vector width. The odd half after an odd K is zero and never multiplied. vdpbf16ps wants this layout; w16a16 is bf16.
//         int8 and fp8 [K up to a multiple of 4][16], the scales apart, by output. int4: for each 64 k's a line of 16 32-bit
//         words, word j the bf16 scales of output j for the first 32 of them (low half) and the others; then for each 8
//         k's a line of 16 words, word j the codes of output j: the first four k's in the low halves of its bytes, the
//         others in the high ones. Lines end with K. w4a8 is int4. w8a8: for each 4 k's a line of 16 words, word j the
//         codes of output j, a byte each; the scales apart as int8's. (int8 in that order too: 12 rows on a Zen 4 core with
//         AVX2, 38 G products/s instead of 55, as a code takes one instruction more to widen.) A group of attention's K
//         is a panel, its tokens the outputs; in fewer bits as kv_codec.h has it.
// Order   every output is one lane and one accumulator, fma over k ascending. Rows and panels share loads, not sums.
// Thread  any: no state.
// Source  ours; outputs in lanes after BLIS's packed B (Van Zee & van de Geijn 2015).
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::cpu {

inline constexpr std::uint32_t kLanes = 16;
inline constexpr std::uint32_t kInt4Group = 32;    // inputs that share a scale
inline constexpr std::uint32_t kCodedGroup = 256;  // inputs of a row that share one, where rows are quantised
inline constexpr std::uint32_t kInt4Shift[8] = {0, 8, 16, 24, 4, 12, 20, 28};  // of the code of k + s in its word
// e4m3fn moved up by 7 bits and read as f16 is 2^8 too small: the bits to keep, what NaN comes to, and what that lacks.
inline constexpr std::int16_t kFp8Bits = -0x4001;
inline constexpr std::int16_t kFp8NaN = 0x3f80;
inline constexpr std::int16_t kFp8ToF16NaN = 0x3e80;
inline constexpr std::uint32_t kSpan = 256;                   // positions that attention reduces as one unit
inline constexpr std::uint32_t kSpanGroups = kSpan / kLanes;  // groups of 16 tokens in a span
inline constexpr std::uint32_t kGroupsAhead = 4;  // how far ahead of their use attention's groups are asked for

// Of 256 inputs of a row that is quantised, beside their codes. What a sum over them, or over 32 of them, begins with is
// between quantize_row and gemm of one table: an instruction that takes codes without a sign wants a correction.
struct CodedGroup {
  float scale;
  std::int32_t start8;
  std::int32_t start4[kCodedGroup / kInt4Group];
};
// Rows as quantize_row() leaves them; codes that only fill a group up are 0. Or as round_row() does: without groups, and what the
// bytes of `codes` are is between it and gemm of one table.
struct CodedRows {
  const std::int8_t* codes = nullptr;
  std::size_t code_stride = 0;  // bytes
  const CodedGroup* groups = nullptr;
  std::size_t group_stride = 0;
};

// out[r, n] = fma over k ascending of x[r, k] * w[n, k], from +0; then * scales[n] where scales are given; then
// + bias[n] where a bias is. w: int8 and fp8 the code, int4 the code times its group's scale. w8a8, w4a8 and w16a16: `coded`
// instead of x, and the equations of Ops::linear.
// Shape   x [rows, k] and out [rows, n], strides in floats; panel i covers outputs [16i, 16i + 16).
struct GemmArgs {
  const float* x = nullptr;
  std::size_t x_stride = 0;
  CodedRows coded;
  std::uint32_t rows = 0;
  std::uint32_t k = 0;
  const void* panels = nullptr;  // panel i at panels + i * panel_bytes
  std::size_t panel_bytes = 0;
  // Or, where given, at panel_list[i]; behind the last stand kGroupsAhead more, read next, or null.
  const void* const* panel_list = nullptr;
  std::uint32_t n = 0;
  const float* scales = nullptr;  // [ceil(n/16) * 16]
  const float* bias = nullptr;    // [ceil(n/16) * 16]
  float* out = nullptr;
  std::size_t out_stride = 0;
};

// o[r, :] = fma over j in [first, last) ascending of e[r, j] * v[j, :], on top of what o holds.
// Shape   e [rows, kSpan], o [rows, width], strides in floats; token j of the span lies at row j % 16 of groups[j / 16]
//         [kSpanGroups + kGroupsAhead], the last for what is read next, null where there is none.
struct WeighArgs {
  const float* e = nullptr;
  std::size_t e_stride = 0;
  std::uint32_t rows = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const void* const* groups = nullptr;
  std::size_t row_bytes = 0;  // behind the 16 rows of a group lie their scales, where the type has any
  std::uint32_t width = 0;    // a multiple of 16
  float* o = nullptr;
  std::size_t o_stride = 0;
};

// Places in Kernels::gemm that a table over another replaces: backend::WeightType, which its file may not include.
inline constexpr int kGemmW8A8 = 5;
inline constexpr int kGemmW4A8 = 6;
inline constexpr int kGemmW16A16 = 7;

struct Kernels {
  const char* name;
  std::uint32_t tile_rows;    // rows that share one load of a weight
  std::uint32_t tile_panels;  // panels worth handing out together

  // By backend::WeightType: f32, bf16, f16 (as backend::DType), int8, int4, w8a8, w4a8, w16a16, fp8.
  void (*gemm[9])(const GemmArgs& args);
  // A row of n for w8a8 and w4a8: codes and, for each 256 of them, a group (Ops::linear has the equations).
  void (*quantize_row)(const float* x, std::size_t n, std::int8_t* codes, CodedGroup* groups);
  // A row of n for w16a16, at most 4 * (n + 1) bytes of it.
  void (*round_row)(const float* x, std::size_t n, std::int8_t* out);
  // Attention, by backend::KvType: gemm over K in a panel_list, and sums of V rows. rows of weigh <= tile_rows.
  void (*score[5])(const GemmArgs& args);
  void (*weigh[5])(const WeighArgs& args);

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
  // Rotation by halves, in place: lo' = fma(-hi, sin, lo * cos), hi' = fma(lo, sin, hi * cos).
  void (*rotate)(float* head, const float* cosines, const float* sines, std::size_t half);
  // out[i] = (gate[i] / (1 + exp(-gate[i]))) * up[i].
  void (*act_mul)(const float* gate, const float* up, std::size_t n, float* out);
  // x[i] = x[i] + y[i].
  void (*add)(float* x, const float* y, std::size_t n);
  // The highest x[i]; +inf or NaN where one of them is NaN or +inf. -inf where n is 0.
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
