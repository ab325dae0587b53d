// The tensors of a checkpoint as one table: what each is for, its name, shape, and how it is packed. Checks, loading,
// digests, counts of bytes and `quire inspect` all walk it.
// Shape   an entry with several parts is packed as one weight, or concatenated as one vector, in the parts' order.
// Owner   a value.
// Thread  any; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/spec.h"

namespace quire::model {

enum class Role : std::uint8_t {
  kEmbedding,          // [V, W]
  kEmbeddingIn,        // [E, W]
  kEmbeddingOut,       // [W, E]
  kPositionEmbedding,  // [max_positions + offset, E]
  kEmbeddingNorm,
  kInputNorm,  // before attention, and before the MLP of a parallel layer
  kQkv,        // [(H + 2G)·D, E]; of LatentSpec [(query rank or H·N + H·R) + R + C, E]
  kQNorm,
  kKNorm,
  kSinks,  // [H]
  // LatentSpec; of the last two, the "expert" is the head
  kLatentQuery,         // [H·N + H·R, query rank]
  kLatentQueryNorm,     // [query rank]
  kLatentNorm,          // [C]
  kLatentKey,           // [C, N]
  kLatentValue,         // [V, C]
  kAttentionInnerNorm,  // [H·D] before kOut
  kOut,                 // [E, H·D]
  kAttentionNorm,       // after attention
  kMlpNorm,             // before the MLP
  kGateUp,              // [2F, E]; [F, E] if it is not gated
  kExpertRouter,        // [X, E]
  kExpertChoiceBias,    // [X]
  kExpertGateUp,        // of one expert: [2F, E]
  kExpertDown,          // of one expert: [E, F]
  kSharedExpertGate,    // [1, E]
  kExpertRouterNorm,    // [E]
  kExpertScales,        // [X]
  kExpertsNorm,         // [E] before the experts
  kExpertsOutNorm,      // [E] after their sum
  kSharedExpertNorm,    // [E] after the shared expert
  kMlpInnerNorm,        // [F] before kDown
  kDown,                // [E, F]
  kMlpOutNorm,          // after the MLP
  kLayerScale,          // one number
  kXieluPositive,       // one number, as are the next three
  kXieluNegative,
  kXieluLinear,
  kXieluMost,
  kFinalNorm,
  kHead,  // [V, W]
  // PerLayerEmbedding
  kPerLayerEmbedding,       // [V', L·P]
  kPerLayerProjection,      // [L·P, E]
  kPerLayerProjectionNorm,  // [P]
  kPerLayerGate,            // [P, E]
  kPerLayerOut,             // [E, P]
  kPerLayerNorm,            // [E]
  // AltUpSpec; of the first two, the "layer" is the stream, from 1 on
  kStreamIn,         // [E, E]
  kStreamOut,        // [E, E]
  kRouterNorm,       // [E]
  kRouter,           // [n, E]
  kPrediction,       // [n·n, n]
  kCorrection,       // [n, n]
  kCorrectionScale,  // [E]
  kLaurelLeft,       // [rank, E]
  kLaurelRight,      // [E, rank]
  kLaurelNorm,       // [E]
};

// Rows of a tensor, which lie together, or in runs. rows 0: all of them.
struct TensorPart {
  static constexpr std::uint32_t kOnly = ~0u;

  std::string name;
  std::vector<std::uint64_t> shape;  // of the whole tensor
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  // Not 0: of every `stride` rows, from first_row on, the first `run` are taken.
  std::uint64_t run = 0;
  std::uint64_t stride = 0;
  // Heads of so many rows, whose first `turned` rows are pairs (2i, 2i+1), to be reordered to halves; then each head
  // `copies` times. 0: no heads.
  std::uint32_t head_rows = 0;
  std::uint32_t turned = 0;
  std::uint32_t copies = 1;
  bool transposed = false;  // a matrix whose rows are the file's columns
  // Of a transposed matrix, the file's rows that are its inputs. num_inputs 0: all of them.
  std::uint64_t first_input = 0;
  std::uint64_t num_inputs = 0;
  // Of a tensor of several matrices or vectors, one behind the other: which one. All of the above is said of that one.
  std::uint32_t matrix = kOnly;
  bool is_matrix = false;  // of TensorTable::tensors()

  std::uint64_t index() const { return matrix == kOnly ? 0 : matrix; }  // of its matrix in the tensor
  std::uint64_t all_rows() const { return shape.empty() ? 1 : transposed ? shape.back() : first_extent(); }
  std::uint64_t inputs() const {
    return shape.empty() ? 1 : !transposed ? shape.back() : num_inputs != 0 ? num_inputs : first_extent();
  }
  std::uint64_t rows_in_file() const { return rows != 0 ? rows : all_rows(); }
  std::uint64_t num_rows() const { return rows_in_file() * copies; }

 private:
  std::uint64_t first_extent() const { return shape[matrix == kOnly ? 0 : 1]; }
};

struct TensorEntry {
  enum class Kind : std::uint8_t { kMatrix, kVector, kBias, kNumber };  // kBias: of a norm; kNumber: [1] or []
  static constexpr std::uint32_t kTop = ~0u;

  Role role = Role::kEmbedding;
  std::uint32_t layer = kTop;
  std::uint32_t expert = 0;  // of kExpertGateUp, kExpertDown; the head of kLatentKey, kLatentValue
  Kind kind = Kind::kMatrix;
  std::vector<TensorPart> parts{};
  std::vector<TensorPart> biases{};  // of a matrix: none, or one for each part
  float offset = 0.0f;               // added to a vector's values
  float factor = 1.0f;               // of these sums
};

struct TensorTable {
  std::vector<TensorEntry> entries;  // in the order of use
  std::vector<std::string> skipped;

  bool skips(std::string_view name) const;
  // Every tensor once, in the order of first use: its name and shape.
  std::vector<TensorPart> tensors() const;
};

TensorTable tensor_table(const ModelSpec& spec);

// A matrix that decides by small differences: it is not quantised, and neither is its input.
bool is_router(Role role);
// A table whose rows are looked up and nothing else.
bool is_looked_up(Role role, const ModelSpec& spec);

// The whole name of a layer's tensor: "model.layers.3.mlp.gate".
std::string name_in_layer(const TensorNames& names, std::uint32_t layer, const std::string& name);

}  // namespace quire::model
