// The parts of tensors that the matrices of one layer's attention are packed of, in the order of their outputs.
// Shape   letters as in spec.h; of LatentSpec C, R, N and V.
// Thread  any; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/tensor_table.h"

namespace quire::model {

class AttentionTensors {
 public:
  // Borrows the spec and its layer.
  AttentionTensors(const ModelSpec& spec, std::uint32_t layer) : spec_(spec), layer_(layer) {}

  std::vector<TensorPart> first() const;         // Role::kQkv
  std::vector<TensorPart> second_query() const;  // Role::kLatentQuery
  TensorPart key(std::uint32_t head) const;      // Role::kLatentKey
  TensorPart value(std::uint32_t head) const;    // Role::kLatentValue

 private:
  const AttentionLayer& attention() const { return spec_.layers[layer_].attention; }
  TensorPart part(const std::string& name, std::vector<std::uint64_t> shape) const;
  TensorPart high(std::uint32_t head) const;
  TensorPart of_head(const std::string& name, std::uint32_t head, std::uint64_t rows) const;
  void turn_pairs(TensorPart& rows) const;
  std::vector<TensorPart> latent_query(const std::string& name, std::uint64_t inputs) const;
  std::vector<TensorPart> latent() const;
  std::vector<TensorPart> qkv() const;
  std::vector<TensorPart> qkv_by_kv_head(std::uint64_t q, std::uint64_t kv) const;

  const ModelSpec& spec_;
  std::uint32_t layer_;
};

// NAME.weight, whole.
TensorPart weight_part(const std::string& name, std::vector<std::uint64_t> shape);
// The rows are heads whose pairs that turn are to be reordered to halves.
void reorder_pairs(const ModelSpec& spec, const AttentionLayer& attention, TensorPart& rows);
// The rows are kv heads, of which the layer has copies.
void copy_kv_heads(const AttentionLayer& attention, TensorPart& rows);

}  // namespace quire::model
