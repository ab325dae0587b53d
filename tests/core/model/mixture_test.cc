// Mixtures of experts as models: every layout of a file gives the same weights, a step reads the experts of a row, and a
// mixture of two equal experts with equal router logits is the dense model, bit for bit.
#include "core/model/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "core/cpu/cpu_ops.h"
#include "core/model/decoder.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/tensor_rows.h"
#include "core/model/weight_checks.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace quire::model::mixture_test {
namespace {

using testing::fitting_tensors;
using testing::safetensors_file;
using testing::TempDir;
using testing::TestTensor;
using Layout = ExpertNames::Layout;

const std::string kMixture = R"({"model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 48,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 40,
  "max_position_embeddings": 128, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
  "norm_topk_prob": true, "decoder_sparse_step": 1})";

ModelSpec mixture() { return parse_config(kMixture, "config.json"); }

const TestTensor& named(const std::vector<TestTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TestTensor::name);
  if (found == tensors.end()) throw std::logic_error("no tensor " + name);
  return *found;
}

// [rows, columns] of F32.
struct Matrix {
  explicit Matrix(const TestTensor& tensor) : rows(tensor.shape[0]), columns(tensor.shape.back()) {
    values.resize(rows * columns);
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  std::uint64_t rows, columns;
  std::vector<float> values;
};

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// The same matrices in tensors of all experts.
std::vector<TestTensor> together(const std::vector<TestTensor>& separate, Layout layout, bool alternating) {
  std::vector<TestTensor> out;
  std::map<std::string, std::vector<float>> of_all;
  const auto add = [&](const std::string& name, const std::vector<const std::vector<float>*>& rows,
                       std::uint64_t width) {
    std::vector<float>& all = of_all[name];
    for (std::uint64_t i = 0; layout == Layout::kTogether ? i < rows.size() : i < width; ++i) {
      if (layout == Layout::kTogether) {
        all.insert(all.end(), rows[i]->begin(), rows[i]->end());
      } else {
        for (const auto* row : rows) all.push_back((*row)[i]);
      }
    }
  };
  const auto rows_of = [](const Matrix& matrix) {
    std::vector<std::vector<float>> rows;
    for (std::uint64_t r = 0; r < matrix.rows; ++r) {
      rows.emplace_back(matrix.values.begin() + static_cast<std::ptrdiff_t>(r * matrix.columns),
                        matrix.values.begin() + static_cast<std::ptrdiff_t>((r + 1) * matrix.columns));
    }
    return rows;
  };
  for (const TestTensor& tensor : separate) {
    if (tensor.name.find(".experts.") == std::string::npos) out.push_back(tensor);
  }
  for (const char* layer : {"model.layers.0.mlp.experts.", "model.layers.1.mlp.experts."}) {
    for (int expert = 0; expert < 4; ++expert) {
      const std::string at = layer + std::to_string(expert) + ".";
      const auto gates = rows_of(Matrix(named(separate, at + "gate_proj.weight")));
      const auto ups = rows_of(Matrix(named(separate, at + "up_proj.weight")));
      const auto downs = rows_of(Matrix(named(separate, at + "down_proj.weight")));
      std::vector<const std::vector<float>*> both, down;
      for (std::size_t i = 0; i < 2 * gates.size(); ++i) {
        const bool is_up = alternating ? i % 2 != 0 : i >= gates.size();
        both.push_back(&(is_up ? ups : gates)[alternating ? i / 2 : i % gates.size()]);
      }
      for (const auto& row : downs) down.push_back(&row);
      add(std::string(layer) + "gate_up_proj", both, 32);
      add(std::string(layer) + "down_proj", down, 24);
    }
  }
  for (const auto& [name, values] : of_all) {
    const bool is_down = name.ends_with("down_proj");
    std::vector<std::uint64_t> shape = {4, is_down ? 32u : 48u, is_down ? 24u : 32u};
    if (layout == Layout::kTransposed) std::swap(shape[1], shape[2]);
    out.push_back({name, "F32", shape, bytes_of(values)});
  }
  return out;
}

class ExpertLayouts : public ::testing::TestWithParam<std::pair<Layout, bool>> {};

TEST_P(ExpertLayouts, GiveTheWeightsOfSeparateTensors) {
  const auto [layout, alternating] = GetParam();
  const std::vector<TestTensor> separate = fitting_tensors(mixture(), "F32");
  const auto load = [&](const std::vector<TestTensor>& tensors, backend::Ops& ops) {
    const TempDir dir;
    dir.write("config.json", kMixture);
    dir.write("model.safetensors", safetensors_file(tensors));
    const auto files = ModelFiles::directory(dir.path());
    ModelSpec spec = mixture();
    spec.names.experts.alternating = alternating;
    spec = fitted(spec, open_decoder(*files));
    EXPECT_EQ(spec.names.experts.layout, &tensors == &separate ? Layout::kSeparate : layout);
    return load_weights(ops, spec, *files);
  };
  const auto ops = cpu::make_cpu_ops({.num_threads = 1});
  const Weights expected = load(separate, *ops);
  const Weights found = load(together(separate, layout, alternating), *ops);
  ASSERT_EQ(found.matrices().size(), expected.matrices().size());
  for (std::size_t i = 0; i < expected.matrices().size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(found.matrices()[i]->packed(), expected.matrices()[i]->packed())) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Mixture, ExpertLayouts,
                         ::testing::Values(std::pair{Layout::kTogether, false}, std::pair{Layout::kTogether, true},
                                           std::pair{Layout::kTransposed, false}, std::pair{Layout::kTransposed, true}),
                         [](const auto& layout) {
                           return std::string(layout.param.first == Layout::kTogether ? "Together" : "Transposed") +
                                  (layout.param.second ? "Alternating" : "");
                         });

TEST(Mixture, AStepOfOneRowReadsTheExpertsOfARow) {
  const ModelSpec spec = mixture();
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(fitting_tensors(spec)));
  const auto ops = cpu::make_cpu_ops({.num_threads = 1});
  const Weights weights = load_weights(*ops, spec, *ModelFiles::directory(dir.path()));
  std::size_t experts = 0;
  for (std::uint32_t layer = 0; layer < 2; ++layer) {
    for (std::uint32_t expert = 0; expert < 4; ++expert) {
      experts += weights.list(Role::kExpertGateUp, layer, expert)[0].bytes();
      experts += weights.list(Role::kExpertDown, layer, expert)[0].bytes();
    }
  }
  EXPECT_EQ(weights.step_bytes(),
            weights.packed_bytes() - weights.weight(Role::kEmbedding).bytes() - experts + experts * 2 / 4);
}

TEST(Mixture, ItsRouterIsNeverQuantised) {
  const ModelSpec spec = mixture();
  for (const Role role : {Role::kExpertRouter, Role::kSharedExpertGate}) {
    for (const backend::Format format : backend::kQuantizedFormats) {
      EXPECT_EQ(quantize_of(role, spec, format), std::nullopt);
    }
  }
  for (const Role role : {Role::kExpertGateUp, Role::kExpertDown}) {
    EXPECT_EQ(quantize_of(role, spec, backend::Format::kInt8), backend::Format::kInt8);
  }
}

TEST(Mixture, CodesAndScalesOfATensorAreOneTensorInMxfp4) {
  const auto bytes = [](const std::string& name, const std::vector<std::uint64_t>& shape, std::size_t count,
                        char value) {
    return TestTensor{name, "U8", shape, std::string(count, value)};
  };
  const TempDir dir;
  dir.write("model.safetensors",
            safetensors_file({bytes("model.a_blocks", {3, 2, 1, 16}, 96, 0x21),
                              bytes("model.a_scales", {3, 2, 1}, 6, 127), bytes("model.c_blocks", {2, 1, 16}, 32, 1)}));
  const auto files = ModelFiles::directory(dir.path());
  const Checkpoint checkpoint = open_decoder(*files);
  const Tensor* joined = checkpoint.find("model.a");
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->shape, (std::vector<std::uint64_t>{3, 2, 32}));
  EXPECT_EQ(checkpoint.find("model.a_scales"), nullptr);
  EXPECT_NE(checkpoint.find("model.c_blocks"), nullptr);  // no scales
  TensorPart part{.name = "model.a", .shape = joined->shape, .first_row = 1, .rows = 1};
  part.matrix = 2;
  const TensorRows rows(*joined, part, TensorEntry::Kind::kMatrix, /*widens=*/true);
  std::vector<float> values(32);
  ASSERT_EQ(rows.bytes().size(), values.size() * sizeof(float));
  std::memcpy(values.data(), rows.bytes().data(), rows.bytes().size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i % 2 == 0 ? 0.5f : 1.0f) << i;
}

struct Published {
  const char* name;
  const char* config;
  double total, active;  // billions of parameters, by the models' pages; of embeddings one counts as active
};

TEST(Mixture, PublishedConfigsHaveTheirPublishedSizes) {
  const Published kModels[] = {
      {"Mixtral-8x7B", R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
         "num_local_experts": 8, "num_experts_per_tok": 2})",
       46.7, 12.75},
      {"Qwen3-30B-A3B", R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
         "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
         "head_dim": 128, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true})",
       30.5, 3.03},
      {"gpt-oss-20b", R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
         "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
         "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128})",
       20.9, 3.6},
      {"OLMoE-1B-7B", R"({"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024,
         "num_hidden_layers": 16, "num_attention_heads": 16, "vocab_size": 50304, "num_experts": 64,
         "num_experts_per_tok": 8})",
       6.92, 1.18},
  };
  for (const Published& model : kModels) {
    const ModelSpec spec = parse_config(model.config, "config.json");
    std::uint64_t total = 0, active = 0;
    for (const TensorEntry& entry : tensor_table(spec).entries) {
      std::uint64_t numbers = 0;
      for (const TensorPart& part : entry.parts) {
        numbers += part.num_rows() * (entry.kind == TensorEntry::Kind::kMatrix ? part.inputs() : 1);
      }
      for (const TensorPart& bias : entry.biases) numbers += bias.num_rows();
      total += numbers;
      active += step_bytes_of(entry, spec, numbers);
    }
    EXPECT_NEAR(static_cast<double>(total) * 1e-9, model.total, 0.01 * model.total) << model.name;
    EXPECT_NEAR(static_cast<double>(active) * 1e-9, model.active, 0.01 * model.active) << model.name;
  }
}

// Logits of one prompt, all positions.
std::vector<float> logits_of(const ModelSpec& spec, const std::vector<TestTensor>& tensors,
                             std::optional<backend::Format> quantize) {
  const TempDir dir;
  dir.write("model.safetensors", safetensors_file(tensors));
  const auto ops = cpu::make_cpu_ops({.num_threads = 2});
  const Decoder decoder(*ops, spec, *ModelFiles::directory(dir.path()), 64, {.quantize = quantize});
  constexpr std::uint32_t kRows = 20;
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> positions, slots;
  std::vector<backend::LogitsRow> logits_rows;
  for (std::uint32_t i = 0; i < kRows; ++i) {
    tokens.push_back(static_cast<TokenId>(i * 7 % spec.vocab));
    positions.push_back(i);
    slots.push_back(i);
    logits_rows.push_back({i, i + 1, {.temperature = 0.0f}});
  }
  const std::vector<BlockId> table = {BlockId{0}, BlockId{1}};
  const backend::SequenceRows sequence{0, kRows, 0, 0, 2};
  const auto cache = ops->make_kv(spec.kv_shape(16, 2, backend::KvType::kF32));
  Workspace workspace = decoder.make_workspace(kRows, kRows);
  decoder.forward({tokens, positions, slots, {&sequence, 1}, table, logits_rows}, *cache, workspace);
  std::vector<backend::Choice> choices(kRows);
  ops->collect(choices);
  std::vector<float> logits(std::size_t{kRows} * spec.vocab);
  ops->read(*workspace.logits, 0, kRows, logits);
  return logits;
}

TEST(Mixture, OfTwoEqualExpertsWithEqualRouterLogitsHasTheDenseModelsBits) {
  ModelSpec dense = mixture();
  for (LayerSpec& layer : dense.layers) {
    layer.experts.reset();
    layer.mlp.width = 24;
  }
  const std::vector<TestTensor> tensors = fitting_tensors(dense, "F32");
  ModelSpec mixed = mixture();
  for (LayerSpec& layer : mixed.layers) layer.experts->rule.num_experts = 2;
  std::vector<TestTensor> doubled;
  for (const TestTensor& tensor : tensors) {
    const std::size_t at = tensor.name.find(".mlp.");
    if (at == std::string::npos) {
      doubled.push_back(tensor);
      continue;
    }
    for (const char* expert : {".mlp.experts.0.", ".mlp.experts.1."}) {
      doubled.push_back(tensor);
      doubled.back().name.replace(at, 5, expert);
    }
  }
  for (const char* layer : {"0", "1"}) {  // two equal rows
    TestTensor router = testing::filled(std::string("model.layers.") + layer + ".mlp.gate.weight", "F32", {1, 32});
    router.data += router.data;
    router.shape = {2, 32};
    doubled.push_back(router);
  }
  for (const std::optional<backend::Format> format :
       {std::optional<backend::Format>(), std::optional(backend::Format::kInt8),
        std::optional(backend::Format::kW8A8)}) {
    const std::vector<float> expected = logits_of(dense, tensors, format);
    const std::vector<float> found = logits_of(mixed, doubled, format);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace quire::model::mixture_test
