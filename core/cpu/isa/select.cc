#include "core/cpu/isa/select.h"

#include <cpuid.h>

#include <vector>

#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"

namespace quire::cpu {
namespace {

// Asked of the processor itself: clang 16 has no name for it.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Slowest first.
std::vector<const Kernels*> supported_kernels() {
  std::vector<const Kernels*> tables = {kernels_scalar()};
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2) tables.push_back(kernels_avx2());
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    tables.push_back(kernels_avx512());
    if (__builtin_cpu_supports("avx512vnni")) tables.push_back(kernels_avx512vnni());
  }
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
  throw StartError("instruction set '" + isa + "' is not one this machine has; it has " + names);
}

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (const Kernels* table : supported_kernels()) names.emplace_back(table->name);
  return names;
}

}  // namespace quire::cpu
