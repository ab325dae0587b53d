// Test support: a target and draft heads for it, tiny and random, in directories of their own.
// Owner   values; TempDir deletes its directory.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/model/tiny_checkpoint.h"

namespace quire::speculate::testing {

using model::testing::TestTensor;

inline const std::string kTarget = R"({"model_type": "llama", "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 40,
  "max_position_embeddings": 256})";

inline const std::string kEagle3 = R"({"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": LAYERS,
  "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 40, "draft_vocab_size": 32,
  "eagle_aux_hidden_state_layer_ids": [0, 2, 3]})";

inline const std::string kEagle1 = R"({"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1,
  "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 40})";

inline std::vector<float> values_of(const TestTensor& tensor) {
  std::vector<float> values(tensor.data.size() / 4);
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// matrix · x, in f64.
inline std::vector<double> times(const TestTensor& matrix, const std::vector<double>& x) {
  const std::vector<float> values = values_of(matrix);
  std::vector<double> y(values.size() / x.size());
  for (std::size_t i = 0; i < values.size(); ++i) y[i / x.size()] += static_cast<double>(values[i]) * x[i % x.size()];
  return y;
}

// States that a step would have left [rows, E].
inline std::unique_ptr<backend::Buffer> random_states(backend::Ops& ops, std::uint32_t rows,
                                                      std::vector<float>& values) {
  auto states = ops.make_buffer(64, 16);
  values = values_of(model::testing::filled("states", "F32", {rows, 16}));
  ops.write(values, *states);
  return states;
}

inline void write_target(const model::testing::TempDir& dir) {
  dir.write("config.json", kTarget);
  const model::ModelSpec config = model::parse_config(kTarget, "target");
  dir.write("model.safetensors", model::testing::safetensors_file(model::testing::fitting_tensors(config, "F32")));
}

inline void add_layer(std::vector<TestTensor>& tensors, const std::string& at, std::uint64_t width) {
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& shape) {
    tensors.push_back(model::testing::filled(at + name, "F32", shape));
  };
  add("self_attn.q_proj.weight", {16, width});
  add("self_attn.k_proj.weight", {8, width});
  add("self_attn.v_proj.weight", {8, width});
  add("self_attn.o_proj.weight", {16, 16});
  add("mlp.gate_proj.weight", {20, 16});
  add("mlp.up_proj.weight", {20, 16});
  add("mlp.down_proj.weight", {16, 20});
  add("post_attention_layernorm.weight", {16});
}

// Draft ids are every target's id but each fifth.
inline TestTensor offsets() {
  TestTensor tensor{"d2t", "I64", {32}, {}};
  for (std::int64_t i = 0; i < 32; ++i) {
    const std::int64_t apart = i / 4 + 1;
    tensor.data.append(reinterpret_cast<const char*>(&apart), sizeof(apart));
  }
  return tensor;
}

inline void write_eagle3(const model::testing::TempDir& dir, std::uint32_t num_layers = 1) {
  dir.write("config.json", model::testing::replaced(kEagle3, "LAYERS", std::to_string(num_layers)));
  std::vector<TestTensor> tensors;
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& shape) {
    tensors.push_back(model::testing::filled(name, "F32", shape));
  };
  add("fc.weight", {16, 48});
  add("norm.weight", {16});
  add("lm_head.weight", {32, 16});
  add_layer(tensors, "midlayer.", 32);
  add("midlayer.hidden_norm.weight", {16});
  add("midlayer.input_layernorm.weight", {16});
  for (std::uint32_t layer = 1; layer < num_layers; ++layer) {
    const std::string at = "layers." + std::to_string(layer) + ".";
    add_layer(tensors, at, 16);
    add(at + "input_layernorm.weight", {16});
  }
  tensors.push_back(offsets());
  // Sharp enough that most guesses differ from each other.
  for (TestTensor& tensor : tensors) {
    if (tensor.name != "lm_head.weight") continue;
    for (std::size_t i = 0; i < tensor.data.size(); i += 4) {
      float value = 0.0f;
      std::memcpy(&value, tensor.data.data() + i, 4);
      value *= 6.0f;
      std::memcpy(tensor.data.data() + i, &value, 4);
    }
  }
  dir.write("model.safetensors", model::testing::safetensors_file(tensors));
}

inline void write_eagle1(const model::testing::TempDir& dir) {
  dir.write("config.json", kEagle1);
  std::vector<TestTensor> tensors = {model::testing::filled("fc.weight", "F32", {16, 32}),
                                     model::testing::filled("fc.bias", "F32", {16})};
  add_layer(tensors, "layers.0.", 16);
  dir.write("model.safetensors", model::testing::safetensors_file(tensors));
}

}  // namespace quire::speculate::testing
