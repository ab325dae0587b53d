// A checkpoint in memory with random weights in a known model's shape, to measure speed without a download. Its output
// is meaningless.
// Owner   RandomModel owns the bytes and must outlive its files().
// Thread  one, while starting.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/source/model_files.h"

namespace quire::tools {

class RandomModel {
 public:
  // Shapes "135m", "0.6b", "1b": SmolLM2-135M, Qwen3-0.6B, Llama-3.2-1B; "1.2b-a0.4b": Qwen3-MoE with 4 of 16 experts;
  // "1b-mla": dense, with DeepSeek-V2-Lite's attention.
  // bf16, tied embeddings, all of one length. The vocabulary has the 256 bytes as tokens, and placeholder names for the
  // rest.
  static bool knows(std::string_view shape);
  explicit RandomModel(std::string_view shape);
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  std::unique_ptr<model::ModelFiles> files() const;

 private:
  std::string config_;
  std::string tokenizer_;
  std::vector<std::byte> safetensors_;
  std::array<std::pair<std::string_view, model::FileBytes>, 3> files_;
};

}  // namespace quire::tools
