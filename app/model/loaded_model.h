// A model ready to run on a device: files found, config read, weights packed. serve, generate and bench begin with it.
//   open_model → read_model → all checks that are cheap → pack_model
// Owner   the caller. The decoder borrows the ops and is destroyed before them.
// Thread  one, while starting.
// Fails   StartError: the model does not exist, this build lacks the device or type, or a part below fails.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/model/compute_device.h"
#include "app/model/memory_plan.h"
#include "core/backend/ops.h"
#include "core/model/arch/config.h"
#include "core/model/decoder.h"
#include "core/model/run/decoder_runner.h"
#include "core/model/source/model_files.h"
#include "core/model/source/safetensors.h"
#include "core/text/tokenizer.h"

namespace quire::app {

struct ModelSource {
  std::unique_ptr<model::ModelFiles> files;
  std::string name;    // "stories"; or the name on the hub; or the last part of the path
  std::string path{};  // as given; empty: of the hub, or the same as `name`
};

ModelSource open_model(const std::string& model);

// The type that most bytes of the checkpoint have; f32 if none of its types is a floating-point one.
backend::Format main_dtype(const model::Checkpoint& checkpoint);
// KV type of --kv-cache-dtype; auto: fp8 if the checkpoint declares it, bf16 for weights in bf16 (or in blocks, which
// the caller says as bf16), else f32.
backend::KvType kv_dtype_of(const Config& config, backend::Format weights, bool kv_in_fp8);

// Quantisation of --quantize.
std::optional<backend::Format> quantize_of(const Config& config);
// Form of --activations.
model::BlockActivation activations_of(const Config& config);
// The checkpoint's tensors packed on the device; slightly too high where matrices packed together share a panel.
struct PackedSize {
  std::uint64_t bytes = 0;
  std::uint64_t step_bytes = 0;  // of weights that a step of one row reads: Weights::step_bytes()
};
PackedSize packed_size_of(const model::Checkpoint& checkpoint, const model::ModelSpec& model,
                          std::optional<backend::Format> quantize, const ComputeDevice& device);

// "8 of 128 in each of 48 layers": the experts of a token; empty: the model has none.
std::string experts_text(const model::ModelSpec& model);

// "Q4_K, Q6_K": types of block-quantised matrices, most bytes first; empty: there are none.
std::string block_types_of(const model::Checkpoint& checkpoint);

// Everything known from the files before any weight is packed.
struct ReadModel {
  ModelSource source;
  model::ModelSpec config;
  bool has_weights = true;
  std::uint64_t num_parameters = 0;
  std::uint64_t weight_bytes = 0;                  // in the checkpoint
  std::uint64_t packed_bytes = 0;                  // planned, with --quantize
  std::uint64_t step_bytes = 0;                    // of these, read for one token
  backend::Format stored = backend::Format::kF32;  // main_dtype()
  std::optional<backend::Format> quantize{};       // by --quantize
  std::string activations{};                       // Quantization::activations
  std::string block_types{};                       // "Q4_K, Q6_K" of a GGUF file, most bytes first; else empty
  backend::KvType kv_dtype = backend::KvType::kF32;
  std::unique_ptr<ComputeDevice> device{};
};

struct LoadedModel : ReadModel {
  std::unique_ptr<backend::Ops> ops;
  std::unique_ptr<model::Decoder> decoder;
  std::string packed_file;  // in --packed-cache; empty: not used
  Duration took{};          // time for packing the weights, or mapping that file
};

enum class WeightFiles : std::uint8_t { kRequired, kPlanned };  // kPlanned: a config.json is enough
ReadModel read_model(const Config& config, ModelSource source, WeightFiles weights = WeightFiles::kRequired);
// Wraps the ops, for example to record the calls.
using OpsWrapper = std::function<std::unique_ptr<backend::Ops>(std::unique_ptr<backend::Ops>)>;
// Called while weights are packed: 0..1.
using OnPacking = std::function<void(double fraction)>;
// `max_rows`: of one step. `max_model_len`: number of positions in the rope table. Shows how far it is.
LoadedModel pack_model(const Config& config, ReadModel read, std::uint32_t max_rows, std::uint32_t max_model_len,
                       const OpsWrapper& wrap = nullptr, const OnPacking& on_progress = nullptr);
// read_model() and pack_model(), for the model's own length.
LoadedModel load_model(const Config& config, ModelSource source, std::uint32_t max_rows,
                       const OpsWrapper& wrap = nullptr);

std::shared_ptr<const text::Tokenizer> load_tokenizer(const model::ModelFiles& files);

MemoryRequest memory_request(const Config& config, const model::ModelSpec& model, backend::KvType kv_dtype,
                             ComputeDevice& device);
// As memory_request(), before the weights are in memory: the bytes that they will take are subtracted from free_bytes.
MemoryRequest request_before_packing(const Config& config, const ReadModel& read);

// "stories: LlamaForCausalLM, 5.5 M parameters, bf16, 10.4 MiB packed, on cpu/avx512 2 threads"; quantised weights as
// "bf16 quantised to int8", blocks as "Q4_K, Q6_K widened to f32".
std::string model_line(const LoadedModel& model);
// "weights packed in 2.914 s", or "weights from /cache/llama.int8.packed in 0.201 s".
std::string arithmetic_line(const LoadedModel& model, std::string_view fingerprint);
std::string weights_line(const LoadedModel& model);

}  // namespace quire::app
