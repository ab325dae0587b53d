// The configuration of a model in GGUF: its metadata as a config.json of its family, and how its tensors differ from
// the family's own: other names, rows of q and k in pairs, norms with their 1 added.
// Thread  start.
// Fails   StartError naming file and key: an architecture that is not read, with the list; a missing key.
// Source  llama.cpp's converter: the keys and tensors that it writes for each architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/gguf/gguf_set.h"
#include "core/model/spec.h"

namespace quire::model {

std::string gguf_config_json(const GgufSet& set);

// The sampling settings that the metadata recommends as a generation_config.json; "{}": none.
std::string gguf_generation_config_json(const GgufSet& set);

// Numbers of layers that the family has in tensors, and the file in arrays of its metadata.
struct GgufNumber {
  std::string tensor;  // as fit_to_gguf() calls it
  std::vector<std::uint64_t> shape;
  float value;
};
std::vector<GgufNumber> numbers_in_metadata(const GgufSet& set);

// Fits a spec that was read from gguf_config_json() to the set's tensors.
void fit_to_gguf(const GgufSet& set, ModelSpec& spec);

}  // namespace quire::model
