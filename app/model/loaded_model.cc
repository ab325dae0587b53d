#include "app/model/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/units.h"
#include "app/model/embedded_model.h"
#include "app/model/engine_settings.h"
#include "app/model/machine.h"
#include "app/model/planned_checkpoint.h"
#include "app/process/progress_line.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_files.h"
#include "core/model/gguf/gguf_set.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/quantized/quantization.h"
#include "core/model/source/other_formats.h"
#include "core/model/weight_checks.h"
#include "core/model/weights.h"
#include "core/sample/token_tree.h"
#include "hub/cache.h"

namespace quire::app {
namespace {

std::string_view view_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// StartError if --dtype is not the stored type. Runs before any weight is read.
void check_dtype(const Config& config, backend::Format stored) {
  if (config.dtype == "auto" || config.dtype == backend::name_of(stored)) return;
  throw StartError(
      fmt::format("--dtype {}: the checkpoint stores {}, and weights are used as stored; leave --dtype out, convert "
                  "the checkpoint, or use --quantize",
                  config.dtype, backend::name_of(stored)));
}

// True if coded matrices were widened, because the device has no kernels for them.
bool widens_blocks(const LoadedModel& model) {
  const bool is_plain = model.decoder->weight_format() == backend::Format::kF32 && !model.decoder->block_activation();
  return !model.block_types.empty() && is_plain && !model.quantize;
}

std::string weights_text(const LoadedModel& model) {
  const std::string stored = model.block_types.empty() ? backend::name_of(model.stored) : model.block_types;
  if (model.quantize) return fmt::format("{} quantised to {}", stored, backend::name_of(*model.quantize));
  if (widens_blocks(model)) return fmt::format("{} widened to f32", stored);
  if (model.block_types.empty()) return stored;
  const auto form = model.decoder->block_activation().value_or(model.decoder->weight_format().activation);
  const std::string declared =
      model.activations.empty() ? "" : fmt::format(" (made for activations {})", model.activations);
  return fmt::format("{} times {}{}", stored, backend::Format::in_integers(form) ? "int8" : "f32", declared);
}

// Maximum number of sequences in a step. Branches of a draft may be sequences of their own.
std::uint32_t sequences_of_step(const Config& config, std::uint32_t max_rows) {
  const std::uint64_t each = config.speculative_config.empty() ? 1 : sample::TokenTree::kMaxNodes;
  const std::uint64_t most = config.max_num_seqs == 0 ? max_rows : config.max_num_seqs * each;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, max_rows));
}

// Path of the packed file. Its name has what is the same at every start, so a changed checkpoint replaces its own file.
std::string packed_file_of(const Config& config, const ReadModel& read) {
  if (config.packed_cache.empty()) return "";
  const std::string name = fmt::format("{}.{}.packed", read.source.name, config.quantize);
  return (std::filesystem::path(config.packed_cache) / name).string();
}

// Swap space of each rank.
std::uint64_t swap_bytes(const Config& config, const ComputeDevice& device) {
  const std::uint64_t asked = config.swap_space.value;
  if (asked == 0) return 0;
  if (!device.has_own_memory()) {
    throw StartError(
        fmt::format("--swap-space {}: on the CPU the KV cache is in main memory already, so swapping is not possible; "
                    "leave --swap-space out (preempted sequences are recomputed), and raise --kv-cache-memory instead",
                    bytes_text(asked)));
  }
  const std::optional<std::uint64_t> free = free_memory_bytes();
  if (free && asked > *free) {
    throw StartError(
        fmt::format("--swap-space {}: only {} of main memory is free; lower it", bytes_text(asked), bytes_text(*free)));
  }
  return asked / device.num_ranks();
}

}  // namespace

namespace {

// The name on the hub of a snapshot, or of a file in one.
std::optional<std::string> repo_of(const std::string& model) {
  constexpr int kMostFolders = 3;  // within a snapshot
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(model, error).lexically_normal();
  for (int i = 0; i <= kMostFolders; ++i, path = path.parent_path()) {
    if (auto repo = hub::repo_of_snapshot(path)) return repo;
  }
  return std::nullopt;
}

// The directory's name, or the file's without ".gguf" and the number of its part.
std::string name_of_path(const std::string& model) {
  std::error_code error;
  if (std::filesystem::is_directory(model, error)) return std::filesystem::canonical(model, error).filename().string();
  std::string name = std::filesystem::path(model::parts_of_split(model).front()).stem().string();
  if (const std::size_t part = name.rfind("-00001-of-"); part != name.npos) name.resize(part);
  return name;
}

}  // namespace

ModelSource open_model(const std::string& model) {
  if (model.empty() || model == kEmbeddedModel) return {embedded_model(), kEmbeddedModel};
  if (!model::is_model_path(model)) {
    throw StartError("MODEL " + model::explain_path(model) +
                     "\n(without MODEL, quire serves the small built-in model)");
  }
  std::unique_ptr<model::ModelFiles> files = model::open_model_files(model);
  const std::optional<std::string> repo = repo_of(model);
  ModelSource source{std::move(files), repo ? *repo : name_of_path(model)};
  if (source.name.empty()) source.name = "model";
  if (!repo && source.name != model) source.path = model;
  return source;
}

backend::Format main_dtype(const model::Checkpoint& checkpoint) {
  std::array<std::uint64_t, backend::kPlainFormats.size()> bytes{};
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (tensor.format() == backend::kPlainFormats[i]) bytes[i] += tensor.bytes();
    }
  }
  return backend::kPlainFormats[static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin())];
}

backend::KvType kv_dtype_of(const Config& config, backend::Format weights, bool kv_in_fp8) {
  using enum backend::KvType;
  if (config.kv_cache_dtype == "auto") return kv_in_fp8 ? kFp8 : weights == backend::Format::kBF16 ? kBF16 : kF32;
  const auto named = [&](backend::KvType type) { return config.kv_cache_dtype == backend::name_of(type); };
  const auto* found = std::find_if(std::begin(backend::kAllKvTypes), std::end(backend::kAllKvTypes), named);
  CHECK(found != std::end(backend::kAllKvTypes));  // config_fields.cc lists only these
  return *found;
}

std::optional<backend::Format> quantize_of(const Config& config) {
  for (const backend::Format format : backend::kQuantizedFormats) {
    if (config.quantize == backend::name_of(format)) return format;
  }
  return std::nullopt;
}

model::BlockActivation activations_of(const Config& config) {
  using enum model::BlockActivation;
  return config.activations == "f32" ? kF32 : config.activations == "int8" ? kInt8 : kInt8PerRow;
}

namespace {

std::uint64_t packed_bytes_of(const model::TensorEntry& entry, const model::Checkpoint& checkpoint,
                              const model::ModelSpec& model, std::optional<backend::Format> quantize,
                              const ComputeDevice& device) {
  std::uint64_t bytes = 0;
  for (const model::TensorPart& part : entry.parts) {
    const model::Tensor* tensor = checkpoint.find(part.name);
    if (tensor == nullptr || !tensor->stored_format()) continue;  // packing rejects it
    const std::uint64_t rows = part.num_rows();
    const std::uint64_t values = part.shape.size() < 2 ? rows : rows * part.inputs();
    if (entry.kind != model::TensorEntry::Kind::kMatrix) {
      bytes += values * sizeof(float);
      continue;
    }
    const backend::Format format = model::packed_format(
        entry.role, model, *tensor, quantize, model::BlockActivation::kInt8,
        [&](backend::Format wanted) { return device.takes(wanted); }, part.transposed,
        [&](backend::Format wanted) { return device.rounds_rows(wanted); });
    bytes += device.weight_bytes(static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(part.inputs()), format);
  }
  for (const model::TensorPart& bias : entry.biases) bytes += bias.num_rows() * sizeof(float);
  return bytes;
}

}  // namespace

PackedSize packed_size_of(const model::Checkpoint& checkpoint, const model::ModelSpec& model,
                          std::optional<backend::Format> quantize, const ComputeDevice& device) {
  const model::TensorTable table = model::tensor_table(model);
  PackedSize size;
  for (const model::TensorEntry& entry : table.entries) {
    const std::uint64_t bytes = packed_bytes_of(entry, checkpoint, model, quantize, device);
    size.bytes += bytes;
    size.step_bytes += model::step_bytes_of(entry, model, bytes);
  }
  return size;
}

std::string experts_text(const model::ModelSpec& model) {
  const model::MixtureSpec* mixture = model.mixture();
  if (mixture == nullptr) return "";
  const auto mixes = [](const model::LayerSpec& layer) { return layer.experts.has_value(); };
  return fmt::format("{} of {} in each of {} layers", mixture->rule.top_k, mixture->rule.num_experts,
                     std::ranges::count_if(model.layers, mixes));
}

std::string block_types_of(const model::Checkpoint& checkpoint) {
  std::map<std::string_view, std::uint64_t> bytes;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (tensor.coded) bytes[tensor.dtype] += tensor.bytes();
  }
  std::vector<std::pair<std::uint64_t, std::string_view>> ordered;
  for (const auto& [type, size] : bytes) ordered.emplace_back(size, type);
  std::ranges::sort(ordered, std::greater());
  std::string out;
  for (const auto& [size, type] : ordered) out += (out.empty() ? "" : ", ") + std::string(type);
  return out;
}

namespace {

// int4 quantises K and V of 16 positions together, and keeps those of a layer that are not 16 yet; a layer that reads
// another's would need both.
void check_kv_dtype(const ReadModel& read) {
  const auto has_latent = [](const model::LayerSpec& layer) { return layer.attention.latent.has_value(); };
  if (read.kv_dtype == backend::KvType::kInt4 && std::ranges::any_of(read.config.layers, has_latent)) {
    throw StartError(
        "--kv-cache-dtype int4: it has steps by channel of K and by token of V, and this model's latents are both; use "
        "int8, fp8 or bf16");
  }
  const auto reads_another = [](const model::LayerSpec& layer) { return layer.attention.kv_source.has_value(); };
  if (read.kv_dtype != backend::KvType::kInt4 || std::ranges::none_of(read.config.layers, reads_another)) return;
  throw StartError(
      "--kv-cache-dtype int4: layers of this model read K and V of other layers, which int4 cannot; use int8, fp8 or "
      "bf16");
}

}  // namespace

ReadModel read_model(const Config& config, ModelSource source, WeightFiles wanted) {
  ReadModel read;
  read.source = std::move(source);
  read.config = model::load_config(*read.source.files);
  read.has_weights = wanted == WeightFiles::kRequired || has_weights(*read.source.files);
  const model::Checkpoint checkpoint =
      read.has_weights ? model::open_decoder(*read.source.files) : planned_checkpoint(read.config, *read.source.files);
  read.config = model::fitted(read.config, checkpoint);
  if (config.max_model_len) read.config.serve_up_to(*config.max_model_len);
  read.stored = main_dtype(checkpoint);
  read.block_types = block_types_of(checkpoint);
  read.quantize = quantize_of(config);
  const std::optional<model::Quantization> made = model::quantization_of(*read.source.files);
  if (made) {
    read.activations = made->activations;
    if (read.block_types.empty() && !made->kv_in_fp8) {
      log_warn("checkpoint", "{}: quantization_config is set, but no matrix is quantised: they are used as stored",
               read.source.files->describe("config.json"));
    }
  }
  check_dtype(config, read.stored);
  read.num_parameters = checkpoint.num_parameters();
  read.weight_bytes = checkpoint.bytes();
  read.kv_dtype =
      kv_dtype_of(config, read.block_types.empty() ? read.stored : backend::Format::kBF16, made && made->kv_in_fp8);
  check_kv_dtype(read);
  read.device = make_compute_device(config);
  read.config.copy_kv_heads(read.device->num_ranks());
  const backend::Format weights = quantize_of(config).value_or(read.stored);
  expect_within_limits(*read.device, read.config, read.kv_dtype, weights, read.source.files->describe("config.json"));
  const PackedSize size = packed_size_of(checkpoint, read.config, quantize_of(config), *read.device);
  read.packed_bytes = size.bytes;
  read.step_bytes = size.step_bytes;
  return read;
}

LoadedModel pack_model(const Config& config, ReadModel read, std::uint32_t max_rows, std::uint32_t max_model_len,
                       const OpsWrapper& wrap, const OnPacking& on_progress) {
  LoadedModel loaded{std::move(read), nullptr, nullptr, "", {}};
  loaded.ops = loaded.device->make_ops(
      {max_rows, sequences_of_step(config, max_rows), max_model_len, kv_groups(config, loaded.config).size()});
  if (wrap) loaded.ops = wrap(std::move(loaded.ops));
  loaded.packed_file = packed_file_of(config, loaded);
  const TimePoint started = SteadyClock().now();
  WorkDisplay display(config.quantize == "none" ? "packing" : "quantising", loaded.source.name, on_progress);
  loaded.decoder = std::make_unique<model::Decoder>(
      *loaded.ops, loaded.config, *loaded.source.files, max_model_len,
      model::LoadOptions{.quantize = quantize_of(config),
                         .packed_file = loaded.packed_file,
                         .blocks = activations_of(config),
                         .on_packed = [&](std::uint64_t done, std::uint64_t size) { display.show(done, size); }});
  loaded.took = SteadyClock().now() - started;
  return loaded;
}

LoadedModel load_model(const Config& config, ModelSource source, std::uint32_t max_rows, const OpsWrapper& wrap) {
  ReadModel read = read_model(config, std::move(source));
  const std::uint32_t longest = read.config.max_model_len();
  Config of_any_steps = config;
  of_any_steps.max_num_seqs = max_rows;
  return pack_model(of_any_steps, std::move(read), max_rows, longest, wrap);
}

std::shared_ptr<const text::Tokenizer> load_tokenizer(const model::ModelFiles& files) {
  const auto given = [&](const char* name) {
    const auto file = files.find(name);
    return file ? view_of(*file) : std::string_view();
  };
  return text::Tokenizer::load(view_of(files.require("tokenizer.json")), given("tokenizer_config.json"),
                               given("special_tokens_map.json"), given("added_tokens.json"));
}

MemoryRequest memory_request(const Config& config, const model::ModelSpec& model, backend::KvType kv_dtype,
                             ComputeDevice& device) {
  MemoryRequest request;
  const model::KvGroups groups = kv_groups(config, model);
  const backend::KvShape shape = groups.shape(config.block_size, 1, kv_dtype);
  request.groups = cache_groups(groups);
  request.step_tokens = config.max_num_batched_tokens;
  request.block_bytes = device.kv_block_bytes(shape);
  request.fixed_bytes = config.max_num_seqs * device.kv_residual_group_bytes(shape);
  request.block_tokens = config.block_size;
  request.max_num_seqs = config.max_num_seqs;
  request.model_len = model.max_model_len();
  request.max_model_len = config.max_model_len;
  if (config.kv_cache_memory) request.kv_cache_bytes = config.kv_cache_memory->value;
  request.free_bytes = device.free_bytes();
  request.own_memory = device.has_own_memory();
  request.swap_bytes = swap_bytes(config, device);
  return request;
}

MemoryRequest request_before_packing(const Config& config, const ReadModel& read) {
  MemoryRequest request = memory_request(config, read.config, read.kv_dtype, *read.device);
  if (request.free_bytes) *request.free_bytes -= std::min(*request.free_bytes, read.packed_bytes);
  return request;
}

std::string model_line(const LoadedModel& model) {
  return fmt::format("{}: {}, {:.1f} M parameters, {}, {} packed{}, on {}", model.source.name,
                     model.config.architecture, static_cast<double>(model.num_parameters) * 1e-6, weights_text(model),
                     bytes_text(model.decoder->packed_bytes()),
                     widens_blocks(model) ? " (less with --quantize int8 or int4)" : "", model.ops->description());
}

std::string arithmetic_line(const LoadedModel& model, std::string_view fingerprint) {
  using enum backend::Format::Activation;
  const auto activation = model.decoder->block_activation().value_or(model.decoder->weight_format().activation);
  return fmt::format(
      "arithmetic: activations in {}, KV cache in {}; every server with the fingerprint {} gives the same "
      "tokens for the same request",
      activation == kInt8PerRow ? "int8, a scale for a row"
      : activation == kInt8     ? "int8"
      : activation == kBF16     ? "bf16"
                                : "f32",
      name_of(model.kv_dtype), fingerprint);
}

std::string weights_line(const LoadedModel& model) {
  const std::string how =
      model.decoder->from_packed_file() ? fmt::format("mapped from {}", model.packed_file) : "packed";
  return fmt::format("weights {} in {}", how, seconds_text(model.took));
}

}  // namespace quire::app
