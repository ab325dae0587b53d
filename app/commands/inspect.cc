// quire inspect: contents of a checkpoint and the memory of its KV cache; or cache statistics of a running server.
//   bytes per token = 2 · L · G · D · bytes     (K and V, layers, kv heads, head size), plus the backend's padding
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "app/commands/commands.h"
#include "app/config/units.h"
#include "app/http/http_get.h"
#include "app/instance/server_statistics.h"
#include "app/model/engine_settings.h"
#include "app/model/loaded_model.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"

namespace quire::app {
namespace {

// Memory of the KV cache with one KV type.
struct KvRow {
  backend::KvType type;
  std::uint64_t bytes_per_token;
  std::vector<std::uint64_t> bytes_of_context;  // [contexts]
  std::uint64_t num_blocks;                     // that fit in the memory
};

struct Inspection {
  model::ModelSpec config;
  model::Checkpoint checkpoint;
  std::string name;
  std::vector<std::uint32_t> contexts;  // tokens, ascending; the last is the model's maximum
  std::uint32_t block_tokens;
  std::uint64_t memory;
  bool memory_was_given;
  std::vector<KvRow> kv;
  model::KvGroups groups;  // of its layers
  std::string quantize;
  std::uint64_t packed_bytes;
};

std::vector<std::uint32_t> contexts_up_to(std::uint32_t longest) {
  std::vector<std::uint32_t> out;
  for (std::uint64_t context = 512; context < longest; context *= 4) out.push_back(static_cast<std::uint32_t>(context));
  out.push_back(longest);
  return out;
}

Inspection look(const Config& config, const ModelSource& source) {
  Inspection out{model::load_config(*source.files),
                 model::Checkpoint::open_decoder(*source.files),
                 source.names.front(),
                 {},
                 config.block_size,
                 0,
                 config.kv_cache_memory.has_value(),
                 {},
                 {},
                 config.quantize,
                 0};
  out.config = model::fitted(out.config, out.checkpoint);
  model::check_weights(out.config, out.checkpoint);
  out.groups = kv_groups(config, out.config);
  const std::unique_ptr<ComputeDevice> device = make_cpu_device(config);
  out.packed_bytes = packed_bytes_of(out.checkpoint, out.config, quantize_of(config), *device);
  out.contexts = contexts_up_to(std::min(out.config.max_model_len(), config.max_model_len.value_or(~0u)));
  const MemoryRequest request = memory_request(config, out.config, backend::KvType::kF32, *device);
  out.memory = request.kv_cache_bytes.value_or(request.free_bytes.value_or(0) / 2);
  for (const backend::KvType type : backend::kAllKvTypes) {
    const std::uint64_t block_bytes = cpu::kv_block_bytes(out.groups.shape(out.block_tokens, 1, type));
    KvRow row{type, bytes_per_token(block_bytes * out.groups.size(), out.block_tokens), {}, out.memory / block_bytes};
    for (const std::uint32_t context : out.contexts) {
      row.bytes_of_context.push_back(request.most_blocks(context) * block_bytes);
    }
    out.kv.push_back(std::move(row));
  }
  return out;
}

// "6 layers x 2 kv heads x 64", or such a text for each kind of layers: "(25 layers x … + 5 layers x …)".
std::string layers_text(const model::ModelSpec& model) {
  std::vector<std::pair<backend::KvLayer, std::uint32_t>> kinds;
  for (backend::KvLayer layer : model.kv_shape(16, 1, backend::KvType::kF32).layers) {
    layer.group = layer.place = 0;
    const auto known = std::ranges::find(kinds, layer, [](const auto& kind) { return kind.first; });
    if (known == kinds.end()) {
      kinds.emplace_back(layer, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [layer, count] : kinds) {
    text += fmt::format("{}{} layers x {} kv heads x {}", text.empty() ? "" : " + ", count, layer.num_kv_heads,
                        layer.head_dim);
  }
  return kinds.size() == 1 ? text : "(" + text + ")";
}

void print_text(const Inspection& seen) {
  fmt::print("{}: {}, {} parameters, {} in {} tensors\n", seen.name, seen.config.architecture,
             seen.checkpoint.num_parameters(), bytes_text(seen.checkpoint.bytes()), seen.checkpoint.tensors().size());
  fmt::print("{}\n", seen.config.describe());
  fmt::print("packed with --quantize {}: {}\n\n", seen.quantize, bytes_text(seen.packed_bytes));
  std::size_t width = 0;
  for (const auto& [name, tensor] : seen.checkpoint.tensors()) width = std::max(width, name.size());
  fmt::print("{:<{}}  {:<5} {:>16} {:>12}\n", "tensor", width, "dtype", "shape", "bytes");
  for (const auto& [name, tensor] : seen.checkpoint.tensors()) {
    fmt::print("{:<{}}  {:<5} {:>16} {:>12}\n", name, width, tensor.dtype, model::shape_text(tensor.shape),
               tensor.data.size());
  }
  fmt::print("\nKV cache: 2 x {} x bytes, in blocks of {} tokens\n", layers_text(seen.config), seen.block_tokens);
  if (const std::string groups = seen.groups.describe(); !groups.empty()) fmt::print("{}\n", groups);
  fmt::print("{:<5} {:>12}", "dtype", "bytes/token");
  for (const std::uint32_t context : seen.contexts) fmt::print(" {:>12}", fmt::format("{} tokens", context));
  fmt::print(" {:>26}\n",
             fmt::format("fit into {}{}", bytes_text(seen.memory), seen.memory_was_given ? "" : " (auto)"));
  for (const KvRow& row : seen.kv) {
    fmt::print("{:<5} {:>12}", backend::name_of(row.type), row.bytes_per_token);
    for (const std::uint64_t bytes : row.bytes_of_context) fmt::print(" {:>12}", bytes_text(bytes));
    fmt::print(" {:>26}\n", fmt::format("{} blocks", row.num_blocks));
  }
}

void print_json(const Inspection& seen) {
  boost::json::array tensors;
  for (const auto& [name, tensor] : seen.checkpoint.tensors()) {
    boost::json::array shape(tensor.shape.begin(), tensor.shape.end());
    tensors.push_back({{"name", name}, {"dtype", tensor.dtype}, {"shape", shape}, {"bytes", tensor.data.size()}});
  }
  boost::json::array kv;
  for (const KvRow& row : seen.kv) {
    boost::json::array contexts;
    for (std::size_t i = 0; i < seen.contexts.size(); ++i) {
      contexts.push_back({{"tokens", seen.contexts[i]}, {"bytes", row.bytes_of_context[i]}});
    }
    kv.push_back({{"dtype", backend::name_of(row.type)},
                  {"bytes_per_token", row.bytes_per_token},
                  {"contexts", contexts},
                  {"blocks", row.num_blocks}});
  }
  const boost::json::object out = {{"model", seen.name},
                                   {"architecture", seen.config.architecture},
                                   {"description", seen.config.describe()},
                                   {"parameters", seen.checkpoint.num_parameters()},
                                   {"bytes", seen.checkpoint.bytes()},
                                   {"quantize", seen.quantize},
                                   {"packed_bytes", seen.packed_bytes},
                                   {"max_model_len", seen.config.max_model_len()},
                                   {"tensors", tensors},
                                   {"block_tokens", seen.block_tokens},
                                   {"kv_memory_bytes", seen.memory},
                                   {"kv", kv}};
  fmt::print("{}\n", boost::json::serialize(out));
}

ServerStatistics ask(const std::string& text, const std::string& key) {
  constexpr Duration kTimeout = std::chrono::seconds(10);
  const Result<Url> url = parse_url(text);
  if (!url) throw StartError("--url " + url.error().message);
  const Result<std::string> metrics = http_get(*url, "/metrics", kTimeout, key);
  if (!metrics) throw StartError("--url " + metrics.error().message);
  const std::optional<ServerStatistics> seen = read_statistics(*metrics);
  if (!seen)
    throw StartError(fmt::format("--url {}: this is not a quire server: its /metrics has no quire: series", text));
  return *seen;
}

int inspect_server(const InspectOptions& options, const std::vector<std::string>& keys) {
  const ServerStatistics seen = ask(options.url, keys.empty() ? std::string() : keys.front());
  fmt::print("{}", options.json ? statistics_json(seen) : statistics_text(seen));
  return 0;
}

}  // namespace

int inspect(const Config& config, const InspectOptions& options) {
  if (!options.url.empty()) return inspect_server(options, config.api_key);
  const ModelSource source = open_model(config.model);
  const Inspection seen = look(config, source);
  options.json ? print_json(seen) : print_text(seen);
  return 0;
}

}  // namespace quire::app
