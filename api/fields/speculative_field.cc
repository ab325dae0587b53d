#include "api/fields/speculative_field.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/json/json_values.h"
#include "core/sample/accept.h"
#include "core/sample/token_tree.h"

namespace quire::api {
namespace {

using simdjson::dom::element;

struct SpeculativeFields {
  std::optional<flow::Speculation> method;
  std::optional<std::uint32_t> max_nodes;
  std::optional<sample::Accept> accept;
};

Result<flow::Speculation> method_of(const std::string& path, element value, const std::vector<std::string>& methods) {
  std::string_view name;
  if (value.get_string().get(name) == simdjson::SUCCESS) {
    if (name == "none") return flow::Speculation{.enabled = false};
    const auto found = std::ranges::find(methods, name);
    if (found != methods.end()) {
      return flow::Speculation{.drafter = static_cast<std::uint32_t>(found - methods.begin())};
    }
  }
  std::string reported = path + " must be \"none\"";
  for (const std::string& method : methods) reported += " or \"" + method + "\"";
  return invalid(path, reported + (methods.empty() ? ": this server has no speculative decoding"
                                                   : ": this server has no other method"));
}

Result<sample::Accept> accept_of(const std::string& path, element value, const Services& services) {
  std::string_view name;
  const bool is_text = value.get_string().get(name) == simdjson::SUCCESS;
  const std::optional<sample::Accept> accept = is_text ? sample::accept_named(name) : std::nullopt;
  if (!accept) return invalid(path, path + " must be \"match\", \"ratio\" or \"block\"");
  if (*accept == sample::Accept::kMatch) return *accept;
  if (services.speculative_methods.empty()) {
    return invalid(path, path + " must be \"match\": this server has no speculative decoding");
  }
  if (services.adaptive_drafts) {
    return invalid(path, path +
                             " must be \"match\": draft sizes are adaptive (--speculative-config), and a size that "
                             "depends on sampled tokens would change the output distribution");
  }
  return *accept;
}

Result<Done> read_one(const std::string& path, std::string_view key, element value, const Services& services,
                      SpeculativeFields& fields) {
  const bool twice = (key == "method" && fields.method) || (key == "num_speculative_tokens" && fields.max_nodes) ||
                     (key == "accept" && fields.accept);
  if (twice) return invalid(path, path + " is given twice");
  if (key == "method") {
    const Result<flow::Speculation> method = method_of(path, value, services.speculative_methods);
    if (!method) return method.error();
    fields.method = *method;
    return Done{};
  }
  if (key == "num_speculative_tokens") {
    const Result<std::int64_t> number = integer_of(path, value, 0, sample::TokenTree::kMaxNodes);
    if (!number) return number.error();
    fields.max_nodes = static_cast<std::uint32_t>(*number);
    return Done{};
  }
  if (key == "accept") {
    const Result<sample::Accept> accept = accept_of(path, value, services);
    if (!accept) return accept.error();
    fields.accept = *accept;
    return Done{};
  }
  return unknown_field(path);
}

}  // namespace

Result<Done> read_speculative(const std::string& name, element value, const Services& services,
                              GenerationRequest& request) {
  if (value.is_bool()) {
    request.speculation = {.enabled = value.get_bool().value_unsafe()};
    return Done{};
  }
  if (!value.is_object()) return invalid(name, name + " must be true, false or an object");
  SpeculativeFields fields;
  const simdjson::dom::object object = object_of(value);
  for (const auto field : object) {
    if (field.value.is_null()) continue;
    const std::string path = name + "." + echoed(field.key);
    if (Result<Done> read = read_one(path, field.key, field.value, services, fields); !read) return read.error();
  }
  request.speculation = fields.method.value_or(flow::Speculation{});
  request.speculation.max_nodes = fields.max_nodes.value_or(0);
  request.accept = fields.accept;
  if (fields.max_nodes == 0u) request.speculation.enabled = false;
  return Done{};
}

}  // namespace quire::api
