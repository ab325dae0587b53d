// The architectures of GGUF files that are read: each one's family here, its own keys, and how its tensors differ.
// Thread  start.
// Fails   StartError naming the key: an architecture that is not read, with the list.
// Source  llama.cpp's converter: the keys and tensors that it writes for each architecture.
#pragma once

#include <boost/json.hpp>
#include <string_view>

#include "core/model/gguf/gguf_source.h"
#include "core/model/spec.h"

namespace quire::model {

struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // as config.json has it; describe() may set another
  bool in_pairs = false;        // the rows of q and k that turn together are neighbours
  bool adds_one = false;        // a norm's scale is stored as 1 + w
  bool layer_norms = false;
  bool layers_differ = false;     // in numbers that most architectures have one of
  bool reads_rope_freqs = false;  // describe() reads that tensor
  bool has_latent = false;        // key_length and value_length are those of its rows in the cache
  // Adds to a config with the sizes and RoPE what only this architecture has. May be null.
  void (*describe)(const GgufSource& source, boost::json::object& config) = nullptr;
  // Tensors that this architecture calls otherwise than most. May be null.
  void (*rename)(const GgufSource& source, TensorNames& names) = nullptr;
  bool dense_too = false;  // of those with experts: files may have none
  // Adds what a config has of experts, behind describe(). Null: files with experts are refused.
  void (*describe_experts)(const GgufSource& source, boost::json::object& config) = nullptr;
};

const GgufArchitecture& architecture_of(const GgufSource& source);

// config[to] = the key's number, if the file has it.
void copy_number(const GgufSource& source, std::string_view from, boost::json::object& config, std::string_view to);

}  // namespace quire::model
