// A checkpoint's tensors, checked against a Config and packed for a backend.
// Shape   per layer q|k|v as one [(H+2G)·D, E] weight, gate|up as one [2F, E]; norms and biases widened to f32.
// Owner   Weights owns what it packed, and the mapping of a file of packed weights; nothing points into the checkpoint's files
//         afterwards.
// Thread  one, while starting.
// Fails   StartError: every missing, unexpected, wrongly shaped or unreadable tensor at once (the first 20 in full),
//         found before anything is packed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/ops.h"
#include "core/model/config.h"
#include "core/model/model_files.h"
#include "core/model/safetensors.h"

namespace quire::model {

struct ExpectedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
};

// Every tensor that a checkpoint of this Config must hold, in the order the decoder uses them. No lm_head where it is
// tied.
std::vector<ExpectedTensor> expected_tensors(const Config& config);

// Throws where checkpoint and config do not fit each other. Reads headers only, and lm_head where the config ties it.
void check_weights(const Config& config, const Checkpoint& checkpoint);

struct LayerWeights {
  std::unique_ptr<backend::Vector> input_norm;  // [E]
  std::unique_ptr<backend::Weight> qkv;         // [(H+2G)·D, E]
  std::unique_ptr<backend::Vector> q_norm;      // [D] or none
  std::unique_ptr<backend::Vector> k_norm;      // [D] or none
  std::unique_ptr<backend::Weight> out;         // [E, H·D]
  std::unique_ptr<backend::Vector> post_norm;   // [E]
  std::unique_ptr<backend::Weight> gate_up;     // [2F, E]
  std::unique_ptr<backend::Weight> down;        // [E, F]
};

struct Weights {
  std::unique_ptr<backend::Weight> embed;  // [V, E]
  std::vector<LayerWeights> layers;        // [L]
  std::unique_ptr<backend::Vector> norm;   // [E]
  std::unique_ptr<backend::Weight> head;   // [V, E]; none where tied: the embedding serves
  std::uint64_t digest = 0;                // checkpoint_digest() of the tensors used
  bool from_packed_file = false;

  const backend::Weight& output() const { return head ? *head : *embed; }
  std::size_t packed_bytes() const;
  // What one step reads of them: all but an embedding that is not also the output matrix.
  std::size_t step_bytes() const { return packed_bytes() - (head ? embed->bytes() : 0); }
};

// What becomes of a matrix where `asked` is asked for. The output matrix is quantised to 8 bits at most: in 4, this one
// matrix would add half of what all others cost (docs/quantization.md). An embedding that is not also the output matrix
// stays as it is: a step reads one row a token of it. One that is, is there once, in 8 bits: a copy of its own to look
// tokens up in would be the largest matrix of a small model, to save an error that cannot be measured.
backend::Quantize quantize_of(std::string_view name, const Config& config, backend::Quantize asked);

// Checks, then packs tensor by tensor, giving each one's mapped pages back as it goes. Norms and biases stay f32.
// `packed_file`: a path, or empty. What lies there is used where it is good for exactly this (packed_file.h); if not, the log
// says why, and what was packed is written there. The weights are the same, bit for bit.
Weights load_weights(backend::Ops& ops, const Config& config, const ModelFiles& files,
                     backend::Quantize quantize = backend::Quantize::kNone, const std::string& packed_file = "");

}  // namespace quire::model
