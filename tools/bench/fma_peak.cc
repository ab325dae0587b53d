#include "tools/bench/fma_peak.h"

#include <immintrin.h>

#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

namespace quire::tools {
namespace {

// Independent chains: more than two units times their latency, fewer than there are registers.
constexpr int kChains = 12;
constexpr std::uint64_t kTurns = 4'000'000;
constexpr float kFactor = 0.999f;  // sums approach kTerm / (1 - kFactor): no overflow, no subnormals
constexpr float kTerm = 0.001f;

__attribute__((target("avx512f"))) float spin_avx512() {
  const __m512 factor = _mm512_set1_ps(kFactor);
  const __m512 term = _mm512_set1_ps(kTerm);
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = term;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float spin_avx2() {
  const __m256 factor = _mm256_set1_ps(kFactor);
  const __m256 term = _mm256_set1_ps(kTerm);
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = term;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

// Without fused instructions: a multiplication and an addition, four lanes wide, which every x86-64 has.
float spin_plain() {
  const __m128 factor = _mm_set1_ps(kFactor);
  const __m128 term = _mm_set1_ps(kTerm);
  __m128 sums[kChains];
  for (__m128& sum : sums) sum = term;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    for (__m128& sum : sums) sum = _mm_add_ps(_mm_mul_ps(sum, factor), term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm_add_ps(sums[0], sums[i]);
  return _mm_cvtss_f32(sums[0]);
}

struct Spin {
  const char* name;
  int lanes;
  float (*run)();
};

Spin widest() {
  if (__builtin_cpu_supports("avx512f")) return {"avx512", 16, spin_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", 8, spin_avx2};
  return {"scalar", 4, spin_plain};
}

}  // namespace

std::string fma_width() { return widest().name; }

std::vector<double> measure_fma_peak(std::uint32_t num_threads, std::uint32_t runs) {
  const Spin spin = widest();
  std::vector<double> figures(runs);
  // One cache line per thread; stored, so that the work is not optimised away.
  std::vector<float> results(std::size_t{num_threads} * 16);
  std::barrier together(num_threads);
  const auto work = [&](std::uint32_t thread) {
    for (double& figure : figures) {
      together.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      results[std::size_t{thread} * 16] += spin.run();
      together.arrive_and_wait();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const double operations = 2.0 * static_cast<double>(kTurns) * kChains * spin.lanes * num_threads;
      if (thread == 0) figure = operations / seconds.count();
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 1; thread < num_threads; ++thread) threads.emplace_back(work, thread);
  work(0);
  threads.clear();
  return figures;
}

}  // namespace quire::tools
