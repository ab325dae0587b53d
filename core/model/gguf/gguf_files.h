// A GGUF model as the files of a Hugging Face model: config.json, tokenizer.json and tokenizer_config.json are made of
// its metadata, and its tensors are the file's own.
// Owner   the caller, as of every ModelFiles.
// Thread  one, at start.
// Fails   StartError: those of GgufSet, gguf_config and gguf_tokenizer; a directory with several models.
#pragma once

#include <memory>
#include <string>

#include "core/model/source/model_files.h"

namespace quire::model {

// A GGUF file (any part of a split one), a directory with one GGUF model and no config.json, or else a model directory.
std::unique_ptr<ModelFiles> open_model_files(const std::string& path);

// True for a path that open_model_files() takes: a directory, or a file that begins as GGUF does.
bool is_model_path(const std::string& path);

}  // namespace quire::model
