// Recognises paths that are no model that quire reads, for messages: what each is, and the next step.
// Shape   a clause about the path, to stand behind its name: "is a LoRA adapter for X, not a model; merge …".
// Fails   never: what cannot be read is not known.
// Source  the layouts that the hub and its programs, llama.cpp, PEFT, ollama, Meta, Mistral, MLC, ONNX Runtime,
//         OpenVINO, TensorRT-LLM, NeMo, DeepSpeed and PyTorch write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/mapped_file.h"

namespace quire::model {

// The path, which is no directory, and what is said of it.
std::string explain_path(const std::string& path);

// Of a directory that lacks `missing`: config.json, tokenizer.json or model.safetensors. Empty: there is nothing known.
std::string explain_directory(const std::string& directory, std::string_view missing);

// Of a file's first bytes, where they are something else than any of a model's files.
std::optional<std::string> explain_bytes(FileBytes bytes);

// Of a checkpoint with a tensor of that name. Empty: it is nothing known.
std::string explain_tensors(std::string_view name);

// Of config.json's quantization_config: its quant_method and bits, 0 where it does not say.
std::string explain_quantization(std::string_view method, std::uint64_t bits);

}  // namespace quire::model
