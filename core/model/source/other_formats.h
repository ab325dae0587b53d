// Error texts for paths that are not a model that quire reads: they name the format found, and the next step.
// Shape   a clause that follows the path: "is a LoRA adapter for X, not a model; merge …".
// Fails   never: an unreadable path counts as unknown.
// Source  the file layouts written by the Hugging Face hub and its programs, llama.cpp, PEFT, ollama, Meta, Mistral,
//         MLC, ONNX Runtime, OpenVINO, TensorRT-LLM, NeMo, DeepSpeed and PyTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/source/mapped_file.h"

namespace quire::model {

// The path and its explanation; `path` is not a directory.
std::string explain_path(const std::string& path);

// Explains a directory that lacks `missing`: config.json, tokenizer.json or model.safetensors. Empty: no known format.
std::string explain_directory(const std::string& directory, std::string_view missing);

// Explains a file by its first bytes; nullopt if they are not of a known wrong format.
std::optional<std::string> explain_bytes(FileBytes bytes);

// Explains a checkpoint that has a tensor of that name, which nothing takes. has_config: it says how it is quantised.
// Empty: nothing known.
std::string explain_tensors(std::string_view name, bool has_config = false);

// Explains config.json's quantization_config: its quant_method and bits (0: not given).
std::string explain_quantization(std::string_view method, std::uint64_t bits);

}  // namespace quire::model
