// A checkpoint's tensors, checked against a ModelSpec's table and packed for a backend.
// Shape   an entry of the table (tensor_table.h) is one weight: q|k|v as [(H+2G)·D, E], gate|up as [2F, E]. Parts of
//         different types are a weight each. Vectors are widened to f32.
// Owner   Weights owns the packed weights and the mapping of a packed file; nothing points into the checkpoint's files
//         afterwards.
// Thread  one, at start.
// Fails   StartError: every missing, unexpected, wrongly shaped or unreadable tensor at once (the first 20 in full),
//         found before anything is packed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"
#include "core/model/spec.h"
#include "core/model/tensor_table.h"

namespace quire::model {

// The form in which products with coded matrices take their input: kF32, kInt8, or kInt8PerRow, which is kInt8 with a
// scale for a row where the checkpoint declares it.
using BlockActivation = backend::Format::Activation;

// The weights of a model by their role.
class Weights {
 public:
  static constexpr std::uint32_t kTop = TensorEntry::kTop;

  // A weight that is not there is our bug: CHECK.
  backend::WeightList list(Role role, std::uint32_t layer = kTop, std::uint32_t expert = 0) const;
  // The only weight of its entry.
  const backend::Weight& weight(Role role) const { return list(role)[0]; }
  bool has(Role role) const;
  // Null if the table has no such vector.
  const backend::Vector* vector(Role role, std::uint32_t layer = kTop) const;
  const backend::Vector* bias(Role role, std::uint32_t layer = kTop) const;

  float number(Role role, std::uint32_t layer) const;  // CHECKs that the table has it

  // The output matrix: the embedding if it is tied.
  const backend::Weight& output() const { return weight(has(Role::kHead) ? Role::kHead : Role::kEmbedding); }
  std::size_t packed_bytes() const;
  // Bytes of weights that a step of one row reads: step_bytes_of() every entry.
  std::size_t step_bytes() const { return step_bytes_; }
  std::uint64_t digest() const { return digest_; }  // checkpoint_digest() of the used tensors
  bool from_packed_file() const { return from_packed_file_; }

  // Of matrices that keep the codes of a checkpoint and are multiplied; nothing: there are none.
  std::optional<BlockActivation> block_activation() const { return block_activation_; }
  void note_codes(BlockActivation activation);  // while loading

  // All matrices, in the order of the table.
  std::vector<backend::Weight*> matrices() const;

  // Called while loading, entry by entry.
  void add(const TensorEntry& entry, std::unique_ptr<backend::Weight> weight);
  void add(const TensorEntry& entry, std::unique_ptr<backend::Vector> vector);
  void add(const TensorEntry& entry, float number);
  void end(std::size_t step_bytes, std::uint64_t digest, bool from_packed_file);

 private:
  using Key = std::uint64_t;
  static Key key_of(Role role, std::uint32_t layer, std::uint32_t expert = 0) {
    return std::uint64_t{expert} << 40 | std::uint64_t{layer} << 8 | static_cast<std::uint8_t>(role);
  }

  std::vector<std::unique_ptr<backend::Weight>> weights_;
  std::vector<std::unique_ptr<backend::Vector>> vectors_;
  std::unordered_map<Key, std::vector<const backend::Weight*>> lists_;
  std::unordered_map<Key, const backend::Vector*> vector_of_;
  std::unordered_map<Key, const backend::Vector*> bias_of_;
  std::unordered_map<Key, float> number_of_;
  std::size_t step_bytes_ = 0;
  std::uint64_t digest_ = 0;
  bool from_packed_file_ = false;
  std::optional<BlockActivation> block_activation_;
};

// Quantisation of an entry's matrices if `asked` is requested. The output matrix keeps at least 8 bits: in 4 bits, this
// one matrix would add half the error of all others together (docs/quantization.md). An embedding that is not tied to
// it stays as stored: a step reads only one row of it per token. A tied embedding exists once, as the output matrix: a
// second copy for lookups would be the largest matrix of a small model, to save an error too small to measure.
std::optional<backend::Format> quantize_of(Role role, const ModelSpec& spec, std::optional<backend::Format> asked);

// The format that a tensor is packed in for an entry: `asked` of quantize_of(), or the tensor's own. Of blocks, times
// `blocks`, or times f32 for routers and tables; f32 where the backend does not take them, of coded numbers whose rows
// are the tensor's columns, and of routers of experts whose rows the backend would round.
backend::Format packed_format(Role role, const ModelSpec& spec, const Tensor& tensor,
                              std::optional<backend::Format> asked, BlockActivation blocks,
                              const std::function<bool(backend::Format)>& takes, bool transposed = false,
                              const std::function<bool(backend::Format)>& rounds_rows = {});

// The part of an entry's packed bytes that a step of one row reads: nothing of a table of which it reads one row (an
// embedding that is not also the output matrix), and of experts the part that a row has.
std::uint64_t step_bytes_of(const TensorEntry& entry, const ModelSpec& spec, std::uint64_t bytes);

struct LoadOptions {
  std::optional<backend::Format> quantize{};
  // A path, or empty. A file there is used if its key matches (packed_file.h); if not, the log has the reason, and the
  // packed weights are written to that path. Both ways give the same weights, bit for bit.
  std::string packed_file{};
  BlockActivation blocks = BlockActivation::kInt8;
  // After every weight that is packed: bytes of the tensors read so far, and of all. Not called for a packed file.
  std::function<void(std::uint64_t done, std::uint64_t size)> on_packed{};
};

// Checks, then packs tensor by tensor and releases each one's mapped pages. Norms and biases stay f32.
Weights load_weights(backend::Factory& factory, const ModelSpec& spec, const ModelFiles& files,
                     const LoadOptions& options = {});

}  // namespace quire::model
