// Room that is made before the first step is enough for every number of rows that a step may have, whatever the model.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "gpu/linear_layers.h"
#include "gpu/parallel/shards.h"
#include "gpu/runtime/null_device.h"

namespace quire::gpu::linear_scratch_test {
namespace {

using backend::Format;

struct Shape {
  const char* name;
  std::uint32_t hidden, ffn, heads, kv_heads, head_dim, vocab;
};
// As their config.json files have them.
constexpr Shape kModels[] = {
    {"SmolLM2 135M", 576, 1536, 9, 3, 64, 49152},           {"SmolLM2 360M", 960, 2560, 15, 5, 64, 49152},
    {"SmolLM2 1.7B", 2048, 8192, 32, 32, 64, 49152},        {"SmolLM3 3B", 2048, 11008, 16, 4, 128, 128256},
    {"Llama 2 7B", 4096, 11008, 32, 32, 128, 32000},        {"Llama 2 13B", 5120, 13824, 40, 40, 128, 32000},
    {"Llama 3.2 1B", 2048, 8192, 32, 8, 64, 128256},        {"Llama 3.2 3B", 3072, 8192, 24, 8, 128, 128256},
    {"Llama 3.1 8B", 4096, 14336, 32, 8, 128, 128256},      {"Llama 3.3 70B", 8192, 28672, 64, 8, 128, 128256},
    {"Llama 3.1 405B", 16384, 53248, 128, 8, 128, 128256},  {"TinyLlama 1.1B", 2048, 5632, 32, 4, 64, 32000},
    {"Mistral 7B v0.3", 4096, 14336, 32, 8, 128, 32768},    {"Mistral Nemo 12B", 5120, 14336, 32, 8, 128, 131072},
    {"Mistral Small 24B", 5120, 32768, 32, 8, 128, 131072}, {"Mistral Large 123B", 12288, 28672, 96, 8, 128, 32768},
    {"Qwen2.5 0.5B", 896, 4864, 14, 2, 64, 151936},         {"Qwen2.5 1.5B", 1536, 8960, 12, 2, 128, 151936},
    {"Qwen2.5 3B", 2048, 11008, 16, 2, 128, 151936},        {"Qwen2.5 7B", 3584, 18944, 28, 4, 128, 152064},
    {"Qwen2.5 14B", 5120, 13824, 40, 8, 128, 152064},       {"Qwen2.5 32B", 5120, 27648, 40, 8, 128, 152064},
    {"Qwen2.5 72B", 8192, 29568, 64, 8, 128, 152064},       {"Qwen3 0.6B", 1024, 3072, 16, 8, 128, 151936},
    {"Qwen3 1.7B", 2048, 6144, 16, 8, 128, 151936},         {"Qwen3 4B", 2560, 9728, 32, 8, 128, 151936},
    {"Qwen3 8B", 4096, 12288, 32, 8, 128, 151936},          {"Qwen3 14B", 5120, 17408, 40, 8, 128, 151936},
    {"Qwen3 32B", 5120, 25600, 64, 8, 128, 151936},         {"Yi 1.5 34B", 7168, 20480, 56, 8, 128, 64000}};

// Outputs and inputs of all layers, of one GPU and of a rank of 2, 4 and 8.
std::set<std::pair<std::uint32_t, std::uint32_t>> layers_of(const Shape& m) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> layers;
  for (const std::uint32_t ranks : {1u, 2u, 4u, 8u}) {
    const std::uint32_t width = m.heads * m.head_dim;
    for (const auto& [n, k] :
         {std::pair{(m.heads + 2 * m.kv_heads) * m.head_dim, m.hidden}, std::pair{m.hidden, width},
          std::pair{2 * m.ffn, m.hidden}, std::pair{m.hidden, m.ffn}, std::pair{m.vocab, m.hidden}}) {
      layers.emplace(outputs_of_rank(n, ranks), k);
    }
  }
  return layers;
}

// On a device that runs nothing, and looks at every launch.
TEST(LinearScratch, IsEnoughForEveryNumberOfRowsOfThirtyModelsInEveryTypeOnOneToEightGpus) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> layers;
  for (const Shape& model : kModels) layers.merge(layers_of(model));
  const auto device = make_null_device();
  const DeviceMemory out(*device, 256, "out");
  for (const Format type : backend::kNamedFormats) {
    for (const bool warpgroups : {false, true}) {
      for (const std::uint32_t max_rows : {7u, 512u}) {
        LinearLayers linear(*device, max_rows, warpgroups);
        for (const auto& [n, k] : layers) linear.reserve(type, k);
        for (const auto& [n, k] : layers) {
          WeightView weight;
          weight.n = n;
          weight.k = k;
          weight.format = type;
          for (std::uint32_t rows = 1; rows <= max_rows; ++rows) {
            linear.multiply({out.as<const float>(), nullptr, 0.0f, k}, rows, weight, {}, out.as<float>(), n);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire::gpu::linear_scratch_test
