#include "app/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/embedded_model.h"
#include "app/machine.h"
#include "app/units.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/other_formats.h"
#include "core/model/weights.h"
#include "core/sample/token_tree.h"

namespace quire::app {
namespace {

std::string_view text_of(model::FileBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Before any weight is read.
void check_dtype(const Config& config, backend::DType stored) {
  if (config.dtype == "auto" || config.dtype == backend::name_of(stored)) return;
  throw StartError(
      fmt::format("--dtype {}: the checkpoint stores {}, and weights are used as they are stored; leave --dtype out, "
                  "convert the checkpoint, or take fewer bits with --quantize",
                  config.dtype, backend::name_of(stored)));
}

std::string weights_text(const LoadedModel& model) {
  const std::string packed = backend::name_of(model.decoder->weight_type());
  const std::string stored = backend::name_of(model.stored);
  return packed == stored ? packed : fmt::format("{} quantised to {}", stored, packed);
}

// A draft's branches may be sequences of their own.
std::uint32_t sequences_of_step(const Config& config, std::uint32_t max_rows) {
  const std::uint64_t each = config.speculative_config.empty() ? 1 : sample::TokenTree::kMaxNodes;
  const std::uint64_t most = config.max_num_seqs == 0 ? max_rows : config.max_num_seqs * each;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, max_rows));
}

// By what decides the packed bytes and stays the same from start to start: a changed checkpoint replaces its own file.
std::string packed_file_of(const Config& config, const ReadModel& read) {
  if (config.packed_cache.empty()) return "";
  const std::string name = fmt::format("{}.{}.packed", read.source.names.front(), config.quantize);
  return (std::filesystem::path(config.packed_cache) / name).string();
}

// Of each rank.
std::uint64_t swap_bytes(const Config& config, const ComputeDevice& device) {
  const std::uint64_t asked = config.swap_space.value;
  if (asked == 0) return 0;
  if (!device.has_own_memory()) {
    throw StartError(fmt::format(
        "--swap-space {}: on the CPU the KV cache is in main memory already, so there is nothing to swap to; leave it "
        "out (preempted sequences are recomputed) and give the memory to --kv-cache-memory",
        bytes_text(asked)));
  }
  const std::optional<std::uint64_t> free = free_memory_bytes();
  if (free && asked > *free) {
    throw StartError(
        fmt::format("--swap-space {}: {} of main memory are free; give less", bytes_text(asked), bytes_text(*free)));
  }
  return asked / device.num_ranks();
}

}  // namespace

ModelSource open_model(const std::string& model) {
  if (model.empty() || model == kEmbeddedModel) return {embedded_model(), {kEmbeddedModel}};
  std::error_code error;
  if (!std::filesystem::is_directory(model, error)) {
    throw StartError("MODEL " + model::explain_path(model) +
                     "\n(without MODEL, quire serves the small one inside the binary)");
  }
  std::unique_ptr<model::ModelFiles> files = model::ModelFiles::directory(model);
  const std::filesystem::path whole = std::filesystem::canonical(model, error);
  ModelSource source{std::move(files), {whole.filename().string()}};
  if (source.names.front().empty()) source.names.front() = "model";
  if (source.names.front() != model) source.names.push_back(model);
  return source;
}

backend::DType main_dtype(const model::Checkpoint& checkpoint) {
  using enum backend::DType;
  std::array<std::uint64_t, 3> bytes{};
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (const auto dtype = tensor.number()) bytes[static_cast<std::size_t>(*dtype)] += tensor.data.size();
  }
  return static_cast<backend::DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

backend::KvType kv_dtype_of(const Config& config, backend::DType weights) {
  using enum backend::KvType;
  if (config.kv_cache_dtype == "auto") return weights == backend::DType::kBF16 ? kBF16 : kF32;
  const auto named = [&](backend::KvType type) { return config.kv_cache_dtype == backend::name_of(type); };
  const auto* found = std::find_if(std::begin(backend::kAllKvTypes), std::end(backend::kAllKvTypes), named);
  CHECK(found != std::end(backend::kAllKvTypes));  // config_fields.cc lists them
  return *found;
}

backend::Quantize quantize_of(const Config& config) {
  for (const backend::Quantize quantize : backend::kAllQuantized) {
    if (config.quantize == backend::name_of(backend::weight_type(backend::DType::kF32, quantize))) return quantize;
  }
  return backend::Quantize::kNone;
}

std::uint64_t packed_bytes_of(const model::Checkpoint& checkpoint, const model::Config& model,
                              backend::Quantize quantize, const ComputeDevice& device) {
  std::uint64_t bytes = 0;
  for (const model::ExpectedTensor& expected : model::expected_tensors(model)) {
    const model::Tensor* tensor = checkpoint.find(expected.name);
    if (tensor == nullptr || !tensor->number()) continue;  // refused when it is packed
    if (expected.shape.size() == 1) {
      bytes += expected.shape[0] * sizeof(float);
      continue;
    }
    const backend::Quantize kind = model::quantize_of(expected.name, model, quantize);
    bytes += device.weight_bytes(static_cast<std::uint32_t>(expected.shape[0]),
                                 static_cast<std::uint32_t>(expected.shape[1]),
                                 backend::weight_type(*tensor->number(), kind));
  }
  return bytes;
}

ReadModel read_model(const Config& config, ModelSource source) {
  ReadModel read;
  read.source = std::move(source);
  read.config = model::load_config(*read.source.files);
  const model::Checkpoint checkpoint = model::Checkpoint::open_decoder(*read.source.files);
  read.stored = main_dtype(checkpoint);
  check_dtype(config, read.stored);
  read.num_parameters = checkpoint.num_parameters();
  read.weight_bytes = checkpoint.bytes();
  read.kv_dtype = kv_dtype_of(config, read.stored);
  read.device = make_compute_device(config);
  const backend::WeightType weights = backend::weight_type(read.stored, quantize_of(config));
  read.device->expect_within_limits(shape_of(read.config, read.kv_dtype, weights),
                                    read.source.files->describe("config.json"));
  read.packed_bytes = packed_bytes_of(checkpoint, read.config, quantize_of(config), *read.device);
  return read;
}

LoadedModel pack_model(const Config& config, ReadModel read, std::uint32_t max_rows, std::uint32_t max_model_len,
                       const OpsWrapper& wrap) {
  LoadedModel loaded{std::move(read), nullptr, nullptr, "", {}};
  loaded.ops = loaded.device->make_ops({max_rows, sequences_of_step(config, max_rows), max_model_len});
  if (wrap) loaded.ops = wrap(std::move(loaded.ops));
  loaded.packed_file = packed_file_of(config, loaded);
  const TimePoint started = SteadyClock().now();
  loaded.decoder = std::make_unique<model::Decoder>(*loaded.ops, loaded.config, *loaded.source.files, max_model_len,
                                                    quantize_of(config), loaded.packed_file);
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
    return file ? text_of(*file) : std::string_view();
  };
  return text::Tokenizer::load(text_of(files.require("tokenizer.json")), given("tokenizer_config.json"),
                               given("special_tokens_map.json"), given("added_tokens.json"));
}

MemoryRequest memory_request(const Config& config, const model::Config& model, backend::KvType kv_dtype,
                             ComputeDevice& device) {
  MemoryRequest request;
  const backend::KvShape shape = model.kv_shape(config.block_size, 1, kv_dtype);
  request.block_bytes = device.kv_block_bytes(shape);
  request.fixed_bytes = config.max_num_seqs * device.kv_open_group_bytes(shape);
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
  return fmt::format("{}: {}, {:.1f} M parameters, {}, {} packed, on {}", model.source.names.front(),
                     model.config.architecture, static_cast<double>(model.num_parameters) * 1e-6, weights_text(model),
                     bytes_text(model.decoder->packed_bytes()), model.ops->description());
}

std::string weights_line(const LoadedModel& model) {
  const std::string how = model.decoder->from_packed_file() ? fmt::format("from {}", model.packed_file) : "packed";
  return fmt::format("weights {} in {}", how, seconds_text(model.took));
}

}  // namespace quire::app
