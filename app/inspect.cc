// quire inspect: what is in a checkpoint, and the memory of its KV cache; or what a running server's cache does.
//   bytes per token = 2 · L · G · D · bytes     (K and V, layers, kv heads, head size), and what the backend pads
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "app/commands.h"
#include "app/http_get.h"
#include "app/loaded_model.h"
#include "app/server_statistics.h"
#include "app/units.h"
#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "core/kv/layout.h"

namespace quire::app {
namespace {

// One storage type of K and V.
struct KvRow {
  backend::KvType type;
  std::uint64_t bytes_per_token;
  std::vector<std::uint64_t> bytes_of_context;  // [contexts]
  std::uint64_t num_blocks;                     // that fit into the memory
};

struct Inspection {
  model::Config config;
  model::Checkpoint checkpoint;
  std::string name;
  std::vector<std::uint32_t> contexts;  // tokens, ascending; the last is the longest the model does
  std::uint32_t block_tokens;
  std::uint64_t memory;
  bool memory_was_given;
  std::vector<KvRow> kv;
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
                 config.quantize,
                 0};
  model::check_weights(out.config, out.checkpoint);
  const std::unique_ptr<ComputeDevice> device = make_cpu_device(config);
  out.packed_bytes = packed_bytes_of(out.checkpoint, out.config, quantize_of(config), *device);
  out.contexts = contexts_up_to(std::min(out.config.max_model_len(), config.max_model_len.value_or(~0u)));
  const MemoryRequest request = memory_request(config, out.config, backend::KvType::kF32, *device);
  out.memory = request.kv_cache_bytes.value_or(request.free_bytes.value_or(0) / 2);
  for (const backend::KvType type : backend::kAllKvTypes) {
    const std::uint64_t block_bytes = cpu::kv_block_bytes(out.config.kv_shape(out.block_tokens, 1, type));
    KvRow row{type, bytes_per_token(block_bytes, out.block_tokens), {}, out.memory / block_bytes};
    for (const std::uint32_t context : out.contexts) {
      row.bytes_of_context.push_back(kv::blocks_for(context, out.block_tokens) * block_bytes);
    }
    out.kv.push_back(std::move(row));
  }
  return out;
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
  fmt::print("\nKV cache: 2 x {} layers x {} kv heads x {} x bytes, in blocks of {} tokens\n{:<5} {:>12}",
             seen.config.num_layers, seen.config.num_kv_heads, seen.config.head_dim, seen.block_tokens, "dtype",
             "bytes/token");
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
    throw StartError(fmt::format("--url {}: this is no quire server: its /metrics has no quire: series", text));
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
