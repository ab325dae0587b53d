// A checkpoint's weights as a backend packed them, in a file: whoever starts next maps it instead of packing them again.
//   file    header · table · weights.  Numbers are little endian.
//   header  magic, hash of all that follows up to the weights, version, key, the checkpoint's digest, sizes
//   table   the bytes of each weight, and a hash of each 2 MiB of the weights
// The key stands for everything that decides the weights' bytes: a file is good for exactly that.
// Shape   the weights begin at a multiple of 2 MiB, each at a multiple of 4096, as in the file so in memory. Written in pieces
//         of 2 MiB, they lie on huge pages in memory where the file system has such (MappedFile).
// Owner   whoever holds owner() keeps the mapping. A file is never changed, another one takes its name.
// Thread  one, while starting; pieces are checked on the backend's threads.
// Fails   open(): kNotFound where there is no such file, else the reason why it is not good. Nothing that a file says is used
//         before its hash was right. write: the reason, and what was there before stays.
// Source  ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/backend/ops.h"
#include "core/base/result.h"
#include "core/model/mapped_file.h"
#include "core/model/safetensors.h"

namespace quire::model {

// Of names, sizes and times of the checkpoint's files; of config.json; of every tensor's place, shape and first bytes, since files
// that were unpacked from an image may share their times; of the settings. Nothing for a checkpoint in memory.
std::optional<std::uint64_t> packed_key(const ModelFiles& files, const Checkpoint& checkpoint,
                                        backend::Quantize quantize, const std::string& layout);

class PackedFile {
 public:
  static Result<PackedFile> open(const std::string& path, std::uint64_t key, backend::Ops& ops);

  std::uint64_t checkpoint_digest() const { return checkpoint_digest_; }
  const std::vector<FileBytes>& weights() const { return weights_; }
  std::shared_ptr<const void> owner() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::uint64_t checkpoint_digest_ = 0;
  std::vector<FileBytes> weights_;
};

// As .NAME.part first, which takes the name when all is written. One process at a time writes it: another is told so.
Result<Done> write_packed_file(const std::string& path, std::uint64_t key, std::uint64_t checkpoint_digest,
                               std::span<const FileBytes> weights);

}  // namespace quire::model
