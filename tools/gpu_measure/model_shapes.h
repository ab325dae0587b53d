// Models for measurements: their shapes, and checkpoint files with these shapes but without values. The values are made
// on the device.
// Owner   HollowModel owns the memory behind its files() and must outlive them.
// Thread  one, while starting.
// Fails   StartError: no such shape; no address space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/source/model_files.h"

namespace quire::gpu::measure {

struct MatrixShape {
  const char* name;
  std::uint32_t n;
  std::uint32_t k;
};

struct ModelShape {
  std::string name;
  std::uint32_t hidden = 0;  // E
  std::uint32_t ffn = 0;
  std::uint32_t num_layers = 0;
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab = 0;
  bool tied = false;

  // Matrices of a layer as they are packed, and the output matrix.
  std::vector<MatrixShape> matrices() const;
  std::string config_json() const;
};

// "1b" and "8b": Llama 3.2 and 3.1; "tiny": a few rows of everything, for the simulator.
ModelShape model_shape(std::string_view name);

class HollowModel {
 public:
  explicit HollowModel(const ModelShape& shape);  // bf16
  ~HollowModel();
  HollowModel(const HollowModel&) = delete;
  HollowModel& operator=(const HollowModel&) = delete;

  std::unique_ptr<model::ModelFiles> files() const;

 private:
  std::string config_;
  void* memory_ = nullptr;  // pages that are never written, so they take no memory, except for the header
  std::size_t bytes_ = 0;
  std::vector<std::pair<std::string_view, model::FileBytes>> files_;
};

}  // namespace quire::gpu::measure
