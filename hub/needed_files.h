// Choice of the files of a repository that are downloaded: those that quire reads.
// Shape   settings (small: config.json, tokenizer, templates, the index of shards), then weights: model.safetensors, or
//         the shards that the index names, or the safetensors of a draft head; or the GGUF files of a quantisation.
// Thread  any; pure.
// Fails   kNotFound with what the repository has instead.
// Source  the layouts of Hugging Face repositories; llama.cpp's choice of a GGUF file by its quantisation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "hub/model_name.h"

namespace quire::hub {

inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// The settings that are read where they are there; config.json is among them.
std::span<const std::string_view> settings_files();

struct NeededFiles {
  std::vector<std::string> settings;
  std::vector<std::string> weights;  // empty: the index, which is in `settings`, names them
};

// `files`: paths of the repository, sorted.
Result<NeededFiles> needed_files(const ModelName& name, std::span<const std::string> files);

// Parts of the split file that this one is part of; 1: it is whole.
std::size_t num_parts(std::string_view gguf);

// Names of files in the text of model.safetensors.index.json; kInvalidArgument if it is none.
Result<std::vector<std::string>> shards_of(std::string_view index);

}  // namespace quire::hub
