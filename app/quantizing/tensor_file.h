// Safetensors files, written whole or not at all: NAME.part becomes NAME when it is complete.
// Owner   the caller; data of a tensor that is copied must outlive the call.
// Thread  one.
// Fails   StartError naming the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/model/source/mapped_file.h"

namespace quire::app {

struct TensorToWrite {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  model::FileBytes data{};                         // copied, if there is nothing to make
  std::function<std::vector<std::byte>()> made{};  // of `bytes`
};

// The length and the JSON in front of the data.
std::string safetensors_header(const std::vector<TensorToWrite>& tensors);

// A file that holds exactly this header and as many bytes behind it: one that an earlier run has completed.
bool is_written(const std::string& path, const std::vector<TensorToWrite>& tensors);

// `on_written`: bytes of each tensor, when it is written.
void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::function<void(std::uint64_t)>& on_written);

// A file of bytes, in the same way.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace quire::app
