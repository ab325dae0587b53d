// Parser of a safetensors file's JSON header and of the shard index: text in, plain records out. Offsets and lengths
// are not checked here.
// Thread  any.
// Fails   StartError: bad syntax, more than 16 dimensions, or a duplicate name (a DOM parser would silently keep the
//         last).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quire::model {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // data_offsets, in bytes from the end of the header
  std::uint64_t end = 0;
};

// Entries in header order; __metadata__ is skipped.
std::vector<HeaderEntry> parse_safetensors_header(std::string_view json, const std::string& file);

// weight_map of model.safetensors.index.json: tensor name → file name.
std::map<std::string, std::string> parse_shard_index(std::string_view json, const std::string& file);

}  // namespace quire::model
