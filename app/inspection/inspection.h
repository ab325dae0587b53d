// Facts on a model on this machine's CPU for `quire inspect MODEL`, from the headers of its files and a short
// measurement of the memory; no weights are packed.
// Shape   sizes in bytes; contexts in tokens, ascending, the last is the longest that the model is served with.
// Owner   values.
// Thread  main. The measurement takes a fraction of a second, on threads of its own.
// Fails   StartError: the model cannot be read. A chat template that cannot be used is a fact, not a failure, and so
//         are weights that are not there: the facts are then those of config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/model/chat_templates.h"
#include "app/model/loaded_model.h"
#include "app/model/speed_estimate.h"
#include "core/model/run/kv_groups.h"
#include "core/model/source/safetensors.h"

namespace quire::app {

// Memory of the KV cache with one type.
struct KvMemory {
  struct OfContext {
    std::uint32_t tokens = 0;
    std::uint64_t bytes = 0;    // of one stream of that length
    std::uint64_t streams = 0;  // that fit into Inspection::kv_bytes
  };

  backend::KvType type = backend::KvType::kF32;
  std::uint64_t bytes_per_token = 0;
  std::vector<OfContext> contexts;
  std::uint64_t num_blocks = 0;  // that fit
};

struct Inspection {
  std::string name;
  model::ModelSpec config;
  bool has_weights = true;  // false: the checkpoint is planned from config.json
  model::Checkpoint checkpoint;
  std::string weights{};     // "bf16", or the types of a GGUF file's blocks
  std::string quantize{};    // value of --quantize
  std::uint64_t packed = 0;  // bytes of the weights in memory
  ChatSummary chat{};
  std::string chat_problem{};  // why the template cannot be used; empty: it can, or there is none
  std::uint32_t block_tokens = 0;
  model::KvGroups groups{};
  backend::KvType kv_type = backend::KvType::kF32;  // that --kv-cache-dtype auto takes
  std::optional<std::uint64_t> free_bytes{};        // now; empty: unknown
  bool kv_bytes_given = false;                      // by --kv-cache-memory
  std::uint64_t kv_bytes = 0;
  std::vector<KvMemory> kv{};
  SpeedEstimate speed{};

  std::uint32_t longest() const { return kv.front().contexts.back().tokens; }
  const KvMemory& served_kv() const;  // of kv_type
  std::uint64_t longest_kv_bytes() const { return served_kv().contexts.back().bytes; }
};

// `source` must outlive the result: the tensors' names and sizes are read from its files.
Inspection inspect_model(const Config& config, const ModelSource& source);

}  // namespace quire::app
