#include "core/cpu/isa/select.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/start_error.h"

namespace quire::cpu {
namespace {

// Asks the processor itself, because clang 16 has no name for F16C.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Result of a table for a small product in bf16, with cancellation, infinity and numbers near the smallest among its
// inputs. The rounding of vdpbf16ps is documented less exactly than that of fma, so it is tried.
constexpr std::uint32_t kTried = 64;  // inputs
[[maybe_unused]] std::array<std::uint32_t, kLanes> tried(const Kernels& table) {
  std::array<float, kTried> x{};
  std::array<std::uint16_t, kTried * kLanes> panel{};
  std::uint32_t random = 1;
  const auto draw = [&random] { return random = random * 1664525u + 1013904223u; };
  for (float& value : x) {
    const std::uint32_t bits = (draw() & 0x80ffffffu) + 0x3e800000u;
    std::memcpy(&value, &bits, sizeof value);
  }
  for (std::uint16_t& half : panel) half = static_cast<std::uint16_t>((draw() >> 16 & 0x80ffu) + 0x3e80u);
  for (std::uint32_t i = 0; i < kTried; i += 8)
    panel[i * kLanes] = static_cast<std::uint16_t>(0x0080u + i);  // output 0
  panel[2] = 0x7f7f;                                              // output 1
  alignas(64) std::array<std::int8_t, (kTried + 1) * sizeof(float)> row{};
  table.round_row(x.data(), kTried, row.data());
  std::array<float, kLanes> out{};
  GemmArgs args;
  args.coded.codes = row.data();
  args.rows = 1;
  args.k = kTried;
  args.panels = panel.data();
  args.panel_bytes = sizeof panel;
  args.n = kLanes;
  args.out = out.data();
  table.gemm[kGemmW16A16](args);
  std::array<std::uint32_t, kLanes> bits{};
  std::memcpy(bits.data(), out.data(), sizeof bits);
  return bits;
}

// Tables that this machine can run, slowest first.
std::vector<const Kernels*> supported_kernels() {
  std::vector<const Kernels*> tables = {kernels_scalar()};
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2) tables.push_back(kernels_avx2());
#ifndef QUIRE_WITHOUT_AVX512  // defined for a sanitizer's build on a machine without AVX-512
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    tables.push_back(kernels_avx512());
    const bool vnni = __builtin_cpu_supports("avx512vnni");
    if (vnni) tables.push_back(kernels_avx512vnni());
    if (vnni && __builtin_cpu_supports("avx512bf16") && tried(*kernels_avx512bf16()) == tried(*kernels_avx512())) {
      tables.push_back(kernels_avx512bf16());
    }
  }
#endif
  return tables;
}

}  // namespace

const Kernels& select_kernels(const std::string& isa) {
  const std::vector<const Kernels*> tables = supported_kernels();
  if (isa == "auto") return *tables.back();
  std::string names = "auto";
  for (const Kernels* table : tables) {
    if (isa == table->name) return *table;
    names += std::string(", ") + table->name;
  }
  throw StartError("instruction set '" + isa + "' is not supported by this machine; it supports " + names);
}

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (const Kernels* table : supported_kernels()) names.emplace_back(table->name);
  return names;
}

}  // namespace quire::cpu
