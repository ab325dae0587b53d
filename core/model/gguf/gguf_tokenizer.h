// The tokenizer of a GGUF file as the files that a Hugging Face model has: tokenizer.json, tokenizer_config.json.
// Shape   tokenizer.ggml.model "gpt2": byte-level BPE, split as tokenizer.ggml.pre says; "llama": BPE by scores over
//         characters, with bytes for the rest. Control and user-defined tokens become added tokens.
// Thread  start.
// Fails   StartError naming file and key: another model or pre, arrays of different lengths, ids outside the tokens.
// Source  llama.cpp's vocabularies and converter; the conversion of SentencePiece models in the package transformers.
#pragma once

#include <string>

#include "core/model/gguf/gguf_file.h"

namespace quire::model {

std::string gguf_tokenizer_json(const GgufFile& file);
// BOS and EOS, and the chat templates.
std::string gguf_tokenizer_config_json(const GgufFile& file);

}  // namespace quire::model
