// A checkpoint's tensors by name: those of ModelFiles::tensors(), or from the shards that
// model.safetensors.index.json names, else from model.safetensors.
// Only headers are read here; a tensor's data is a view into its mapped file and may be unaligned.
// Owner   views into ModelFiles, which must outlive the checkpoint.
// Thread  one, at start.
// Fails   StartError naming file and tensor: a header that overruns its file or exceeds 100 MB, bad JSON, a duplicate
//         name, offsets outside the file, overlaps or gaps between tensors, a byte length that is not shape x dtype.
// Source  the safetensors format description (huggingface/safetensors, README): 8 bytes header length, JSON, data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/backend/tensors.h"
#include "core/backend/weights/blocks.h"
#include "core/model/source/coded_matrix.h"
#include "core/model/source/model_files.h"

namespace quire::model {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

struct Tensor {
  std::string name;
  std::string dtype;  // as in the header, "BF16"; of a coded one the name of its format
  std::vector<std::uint64_t> shape;
  FileBytes data;
  std::string file;                        // its name in errors
  std::vector<float> factors{};            // of the numbers of each of its matrices: has_own_factor(); empty: 1
  std::optional<backend::Format> coded{};  // blocks, or codes with stored scales; nothing: plain, or not read
  // A quantised matrix that could not be joined from its parts: why, with file and tensor.
  std::string unread{};
  // Of coded matrices that do not lie in `data`.
  std::shared_ptr<const CodedMatrix> matrix{};

  void set_coded(backend::Format format, std::shared_ptr<const CodedMatrix> from);

  // Of its rows as they are stored: CodedMatrix::columns().
  std::span<const std::uint32_t> columns() const {
    return matrix == nullptr ? std::span<const std::uint32_t>() : std::span(matrix->columns());
  }
  float factor(std::uint64_t of) const { return factors.empty() ? 1.0f : factors[of]; }
  std::vector<FileBytes> parts() const;                  // all bytes in the files
  std::uint64_t bytes() const;                           // of these; of a tensor without data, those of its shape
  std::uint64_t num_elements() const;                    // overflow was checked when the header was read
  std::optional<backend::Format> format() const;         // of F32, BF16 and F16; nullopt for any other dtype
  std::optional<backend::BlockType> blocks() const;      // of coded ones
  std::optional<backend::Format> stored_format() const;  // of its numbers: coded, or format(). nullopt: it is not read
};

// The tensors of one file, in file order.
std::vector<Tensor> parse_safetensors(FileBytes file, const std::string& name);

class Checkpoint {
 public:
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  static Checkpoint open(const ModelFiles& files);
  // Opens one file of the directory, which must be there.
  static Checkpoint open_file(const ModelFiles& files, std::string_view name);
  // At least one file.
  static Checkpoint of(const ModelFiles& files, NamedTensors named);

  const Tensor* find(std::string_view name) const;
  // By name, ascending.
  const Tensors& tensors() const { return tensors_; }
  void set_tensors(Tensors tensors) { tensors_ = std::move(tensors); }
  std::uint64_t num_parameters() const;
  std::uint64_t bytes() const;
  // The file that lists the tensors: the index of a sharded checkpoint, or the one safetensors file.
  const std::string& file() const { return file_; }
  // The names of the files that hold the tensors, ascending.
  const std::vector<std::string>& files() const { return files_; }

 private:
  using ShardOf = std::map<std::string, std::string>;  // tensor name → file name
  void add_shards(const ModelFiles& files, const std::string& index, const ShardOf& shard_of);

  Tensors tensors_;
  std::string file_;
  std::vector<std::string> files_;
};

// "[64, 172]"
std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace quire::model
