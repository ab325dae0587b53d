// A model ready to run on a device: files found, config read, weights packed. What serve, generate and bench begin with.
//   open_model → read_model → whatever can still be refused cheaply → pack_model
// Owner   the caller. The decoder borrows the ops and is destroyed before them.
// Thread  one, while starting.
// Fails   StartError: no such model, a device or type this build lacks, whatever the parts below refuse.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/compute_device.h"
#include "app/config.h"
#include "app/memory_plan.h"
#include "core/backend/ops.h"
#include "core/model/config.h"
#include "core/model/decoder.h"
#include "core/model/decoder_runner.h"
#include "core/model/model_files.h"
#include "core/model/safetensors.h"
#include "core/text/tokenizer.h"

namespace quire::app {

struct ModelSource {
  std::unique_ptr<model::ModelFiles> files;
  std::vector<std::string> names;  // "stories"; or the directory's name, and the path as given
};

ModelSource open_model(const std::string& model);

// The type that most of the checkpoint's bytes have; f32 where none of its types is a number's.
backend::DType main_dtype(const model::Checkpoint& checkpoint);
// --kv-cache-dtype: auto is bf16 for a bf16 checkpoint, else f32.
backend::KvType kv_dtype_of(const Config& config, backend::DType weights);

// --quantize.
backend::Quantize quantize_of(const Config& config);
// What this checkpoint's tensors take as packed on the device; a little less where matrices packed together share a panel.
std::uint64_t packed_bytes_of(const model::Checkpoint& checkpoint, const model::Config& model,
                              backend::Quantize quantize, const ComputeDevice& device);

// What the files say before any weight is packed.
struct ReadModel {
  ModelSource source;
  model::Config config;
  std::uint64_t num_parameters = 0;
  std::uint64_t weight_bytes = 0;                // as stored
  std::uint64_t packed_bytes = 0;                // as --quantize says, planned
  backend::DType stored = backend::DType::kF32;  // main_dtype()
  backend::KvType kv_dtype = backend::KvType::kF32;
  std::unique_ptr<ComputeDevice> device{};
};

struct LoadedModel : ReadModel {
  std::unique_ptr<backend::Ops> ops;
  std::unique_ptr<model::Decoder> decoder;
  std::string packed_file;  // in --packed-cache; empty: none
  Duration took{};          // packing the weights, or mapping that file
};

ReadModel read_model(const Config& config, ModelSource source);
// Stands before the backend where somebody wants to see what it is asked for.
using OpsWrapper = std::function<std::unique_ptr<backend::Ops>(std::unique_ptr<backend::Ops>)>;
// `max_rows`: of one step. `max_model_len`: positions the rope table covers.
LoadedModel pack_model(const Config& config, ReadModel read, std::uint32_t max_rows, std::uint32_t max_model_len,
                       const OpsWrapper& wrap = nullptr);
// Both, for the model's own length.
LoadedModel load_model(const Config& config, ModelSource source, std::uint32_t max_rows,
                       const OpsWrapper& wrap = nullptr);

std::shared_ptr<const text::Tokenizer> load_tokenizer(const model::ModelFiles& files);

MemoryRequest memory_request(const Config& config, const model::Config& model, backend::KvType kv_dtype,
                             ComputeDevice& device);
// The same before there are weights in memory: what they will take is no longer free.
MemoryRequest request_before_packing(const Config& config, const ReadModel& read);

// "stories: LlamaForCausalLM, 5.5 M parameters, bf16, 10.4 MiB packed, on cpu/avx512 2 threads"; or, for example,
// "bf16 quantised to int8".
std::string model_line(const LoadedModel& model);
// "weights packed in 2.914 s", or "weights from /cache/llama.int8.packed in 0.201 s".
std::string weights_line(const LoadedModel& model);

}  // namespace quire::app
