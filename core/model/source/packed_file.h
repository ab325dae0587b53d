// A file of a checkpoint's weights as a backend packed them: a later start maps the file instead of packing again.
//   file    header · table · weights.  Numbers are little endian.
//   header  magic, hash of all that follows up to the weights, version, key, the checkpoint's digest, sizes
//   table   the bytes of each weight, and a hash of each 2 MiB of the weights
// The key covers everything that decides the weights' bytes; a file is used only if its key is equal.
// Shape   the weights begin at a multiple of 2 MiB, each weight at a multiple of 4096, in the file and in memory. They
//         are written in pieces of 2 MiB and lie on huge pages in memory if the file system has them (MappedFile).
// Owner   owner() keeps the mapping alive. A file is never changed in place; a new file takes its name.
// Thread  one, at start; pieces are checked on the backend's threads.
// Fails   open(): kNotFound if there is no such file, else the reason that it cannot be used. The content is used only
//         after its hashes were checked; before that, only magic, version and sizes that were checked against the
//         file's length. write_packed_file(): the reason, and an earlier file stays.
// Source  ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/factory.h"
#include "core/base/result.h"
#include "core/model/source/mapped_file.h"
#include "core/model/source/safetensors.h"

namespace quire::model {

// Key of a checkpoint's packed weights: a hash of names, sizes and times of its files, of config.json, of the layout
// and quantisation, and of every tensor's name, dtype, shape and first 4096 bytes (files unpacked from an image may
// share their times). Nothing for a checkpoint in memory.
std::optional<std::uint64_t> packed_key(const ModelFiles& files, const Checkpoint& checkpoint,
                                        std::optional<backend::Format> quantize, const std::string& layout);

class PackedFile {
 public:
  static Result<PackedFile> open(const std::string& path, std::uint64_t key, backend::Factory& factory);

  std::uint64_t checkpoint_digest() const { return checkpoint_digest_; }
  const std::vector<FileBytes>& weights() const { return weights_; }
  std::shared_ptr<const void> owner() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::uint64_t checkpoint_digest_ = 0;
  std::vector<FileBytes> weights_;
};

// Writes .NAME.part, then renames it to the path. One process at a time writes; another gets kUnavailable.
Result<Done> write_packed_file(const std::string& path, std::uint64_t key, std::uint64_t checkpoint_digest,
                               std::span<const FileBytes> weights);

}  // namespace quire::model
