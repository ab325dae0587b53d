// Test support: model directories small enough to write by hand, and wrong in exactly one way.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/arch/config.h"
#include "core/model/weights.h"
#include "tests/support/temporary_folder.h"

namespace quire::model::testing {

using TempDir = quire::test::TemporaryFolder;

struct TestTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string data;
};

inline std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

inline std::string safetensors_file(const std::vector<TestTensor>& tensors) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    header += ", \"" + tensor.name + "\": {\"dtype\": \"" + tensor.dtype +
              "\", \"shape\": " + shape_text(tensor.shape) + ", \"data_offsets\": [" + std::to_string(data.size()) +
              ", " + std::to_string(data.size() + tensor.data.size()) + "]}";
    data += tensor.data;
  }
  return with_length(header + "}", data);
}

// Small numbers that differ from element to element and from name to name; F32, or the top half of them as BF16.
inline TestTensor filled(const std::string& name, const std::string& dtype, const std::vector<std::uint64_t>& shape) {
  TestTensor tensor{name, dtype, shape, {}};
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;
  auto state = static_cast<std::uint32_t>(std::hash<std::string>()(name));
  for (std::uint64_t i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    tensor.data.append(dtype == "F32" ? std::string(bytes, 4) : std::string(bytes + 2, 2));
  }
  return tensor;
}

inline const std::string kTinyLlama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
  "vocab_size": 20, "max_position_embeddings": 64})";

// A checkpoint that fits the config, to be broken by the caller.
inline std::vector<TestTensor> fitting_tensors(const ModelSpec& config, const std::string& dtype = "BF16") {
  std::vector<TestTensor> tensors;
  for (const TensorPart& expected : tensor_table(config).tensors())
    tensors.push_back(filled(expected.name, dtype, expected.shape));
  return tensors;
}

// A directory's model, of a config.json and the weights that fit it.
inline std::unique_ptr<ModelFiles> fitting_model(const TempDir& dir, const std::string& config = kTinyLlama) {
  dir.write("config.json", config);
  dir.write("model.safetensors", safetensors_file(fitting_tensors(parse_config(config, "config.json"))));
  return ModelFiles::directory(dir.path());
}

// `text` with the first `from` replaced; dies where there is none, so that a test cannot pass by not changing anything.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no '" + from + "' to replace");
  return text.replace(at, from.size(), to);
}

// What `call` says when it refuses; "" where it does not.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace quire::model::testing
