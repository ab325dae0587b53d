#include "app/inspection/inspection_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "app/config/units.h"
#include "core/base/json.h"

namespace quire::app {
namespace {

// "6 layers x 2 x 2 kv heads x 64", or such a text for each kind of layers: "(25 layers x … + 5 layers x …)".
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
    const std::string numbers = layer.latent == 0
                                    ? fmt::format("2 x {} kv heads x {}", layer.num_kv_heads, layer.head_dim)
                                    : fmt::format("{} + {} of a latent", layer.latent, layer.head_dim - layer.latent);
    text += fmt::format("{}{} layers x {}", text.empty() ? "" : " + ", count, numbers);
  }
  return kinds.size() == 1 ? text : "(" + text + ")";
}

std::string chat_text(const Inspection& seen) {
  if (!seen.chat_problem.empty()) return "cannot be used: " + seen.chat_problem;
  if (!seen.chat.has_template) return "none: chat requests get status 400; --chat-template FILE gives one";
  const auto form = [](const std::string& parser) { return parser.empty() ? "off" : "as " + parser; };
  return fmt::format("yes{}; tool calls {}, reasoning {}", seen.chat.has_tool_template ? ", and one for tools" : "",
                     form(seen.chat.tool_calls), form(seen.chat.reasoning));
}

std::string memory_text(const Inspection& seen) {
  if (!seen.free_bytes) return "unknown";
  const std::string free = bytes_text(*seen.free_bytes);
  return *seen.free_bytes < seen.packed ? free + ": too little for the packed weights" : free;
}

std::string facts_text(const Inspection& seen) {
  const model::Checkpoint& checkpoint = seen.checkpoint;
  const std::uint64_t parameters = checkpoint.num_parameters();
  std::string out = fmt::format("{}: {} (family {}), {} parameters\n\n", seen.name, seen.config.architecture,
                                seen.config.model_type, count_text(parameters));
  const auto row = [&out](std::string_view what, const std::string& value) {
    out += fmt::format("{:<16}{}\n", what, value);
  };
  row("parameters", std::to_string(parameters));
  row("weights", fmt::format("{}, {} {} in {} tensors", seen.weights, bytes_text(checkpoint.bytes()),
                             seen.has_weights ? "on disk" : "by config.json: there are no weights here",
                             checkpoint.tensors().size()));
  row("vocabulary", fmt::format("{} tokens", seen.config.vocab));
  row("context", fmt::format("{} tokens", seen.config.max_model_len()));
  if (seen.has_weights) row("chat template", chat_text(seen));
  if (const std::string experts = experts_text(seen.config); !experts.empty()) {
    row("experts",
        fmt::format("{} for a token; {} of the packed weights are active", experts, bytes_text(seen.speed.step_bytes)));
  }
  row("packed", fmt::format("{} in memory with --quantize {}", bytes_text(seen.packed), seen.quantize));
  row("KV cache",
      fmt::format("{} bytes per token in {}", seen.served_kv().bytes_per_token, backend::name_of(seen.kv_type)));
  row("free memory", memory_text(seen));
  row("decoding speed", fmt::format("{}\n{:16}({})", speed_text(seen.speed, seen.longest(), seen.longest_kv_bytes()),
                                    "", speed_source_text(seen.speed)));
  row("shape", seen.config.describe());
  return out;
}

std::string kv_text(const Inspection& seen) {
  std::string out =
      fmt::format("\nKV cache: {} x bytes, in blocks of {} tokens\n", layers_text(seen.config), seen.block_tokens);
  if (const std::string groups = seen.groups.describe(); !groups.empty()) out += groups + "\n";
  out += fmt::format("streams that fit into {} ({}), and the memory of each\n", bytes_text(seen.kv_bytes),
                     seen.kv_bytes_given ? "--kv-cache-memory" : "half of what is free beside the weights");
  out += fmt::format("{:<5} {:>12}", "dtype", "bytes/token");
  for (const KvMemory::OfContext& context : seen.kv.front().contexts) {
    out += fmt::format(" {:>20}", fmt::format("{} tokens", context.tokens));
  }
  out += "\n";
  for (const KvMemory& row : seen.kv) {
    out += fmt::format("{:<5} {:>12}", backend::name_of(row.type), row.bytes_per_token);
    for (const KvMemory::OfContext& context : row.contexts) {
      out += fmt::format(" {:>20}", fmt::format("{} x {}", context.streams, bytes_text(context.bytes)));
    }
    out += "\n";
  }
  return out;
}

std::string tensors_text(const model::Checkpoint& checkpoint) {
  std::size_t width = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) width = std::max(width, name.size());
  std::string out = fmt::format("\n{:<{}}  {:<5} {:>16} {:>12}\n", "tensor", width, "dtype", "shape", "bytes");
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    out += fmt::format("{:<{}}  {:<5} {:>16} {:>12}\n", name, width, tensor.dtype, model::shape_text(tensor.shape),
                       tensor.bytes());
  }
  return out;
}

json::Value count(std::uint64_t number) { return number; }

json::Value text_or_null(const std::string& text) { return text.empty() ? json::Value() : json::Value(text); }

json::Array tensors_json(const model::Checkpoint& checkpoint) {
  json::Array out;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    json::Array shape;
    for (const std::uint64_t size : tensor.shape) shape.push_back(count(size));
    out.push_back(json::Object{
        {"name", name}, {"dtype", tensor.dtype}, {"shape", std::move(shape)}, {"bytes", count(tensor.bytes())}});
  }
  return out;
}

json::Array kv_json(const Inspection& seen) {
  json::Array out;
  for (const KvMemory& row : seen.kv) {
    json::Array contexts;
    for (const KvMemory::OfContext& context : row.contexts) {
      contexts.push_back(json::Object{
          {"tokens", count(context.tokens)}, {"bytes", count(context.bytes)}, {"streams", count(context.streams)}});
    }
    out.push_back(json::Object{{"dtype", backend::name_of(row.type)},
                               {"bytes_per_token", count(row.bytes_per_token)},
                               {"contexts", std::move(contexts)},
                               {"blocks", count(row.num_blocks)}});
  }
  return out;
}

}  // namespace

std::string inspection_text(const Inspection& seen, bool with_tensors) {
  return facts_text(seen) + kv_text(seen) + (with_tensors ? tensors_text(seen.checkpoint) : "");
}

std::string inspection_json(const Inspection& seen, bool with_tensors) {
  const SpeedEstimate& speed = seen.speed;
  json::Object out = {{"model", seen.name},
                      {"architecture", seen.config.architecture},
                      {"family", seen.config.model_type},
                      {"description", seen.config.describe()},
                      {"parameters", count(seen.checkpoint.num_parameters())},
                      {"has_weights", seen.has_weights},
                      {"weights", seen.weights},
                      {"bytes", count(seen.checkpoint.bytes())},
                      {"num_tensors", count(seen.checkpoint.tensors().size())},
                      {"quantize", seen.quantize},
                      {"packed_bytes", count(seen.packed)},
                      {"experts", text_or_null(experts_text(seen.config))},
                      {"vocabulary", count(seen.config.vocab)},
                      {"max_model_len", count(seen.config.max_model_len())},
                      {"chat", json::Object{{"template", seen.chat.has_template},
                                            {"tool_template", seen.chat.has_tool_template},
                                            {"tool_calls", text_or_null(seen.chat.tool_calls)},
                                            {"reasoning", text_or_null(seen.chat.reasoning)},
                                            {"problem", text_or_null(seen.chat_problem)}}},
                      {"free_memory_bytes", seen.free_bytes ? count(*seen.free_bytes) : json::Value()},
                      {"block_tokens", count(seen.block_tokens)},
                      {"kv_memory_bytes", count(seen.kv_bytes)},
                      {"kv_dtype", backend::name_of(seen.kv_type)},
                      {"kv", kv_json(seen)},
                      {"estimated_speed",
                       json::Object{{"threads", count(speed.threads)},
                                    {"read_bytes_per_s", count(static_cast<std::uint64_t>(speed.bytes_per_s))},
                                    {"step_bytes", count(speed.step_bytes)},
                                    {"tokens_per_s", speed.tokens_per_s(0)},
                                    {"tokens_per_s_at_max_model_len", speed.tokens_per_s(seen.longest_kv_bytes())}}}};
  if (with_tensors) out["tensors"] = tensors_json(seen.checkpoint);
  return json::serialize(out) + "\n";
}

}  // namespace quire::app
