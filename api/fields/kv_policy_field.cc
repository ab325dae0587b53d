#include "api/fields/kv_policy_field.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "api/json/json_values.h"

namespace quire::api {
namespace {

using simdjson::dom::element;
using PolicyKind = flow::KvPolicy::Kind;

constexpr std::uint32_t kGroup = 16;  // positions that a policy keeps or drops together
constexpr std::uint32_t kSpan = 256;  // positions after which a policy is applied again

Result<PolicyKind> kind_of(const std::string& path, element value) {
  std::string_view type;
  if (value.get_string().get(type) == simdjson::SUCCESS) {
    if (type == "sink_window") return PolicyKind::kSinkWindow;
    if (type == "heavy_hitters") return PolicyKind::kHeavyHitters;
  }
  return invalid(path, path + R"( must be "sink_window" or "heavy_hitters")");
}

Result<std::uint32_t> multiple_of(std::uint32_t unit, const std::string& path, element value, std::uint32_t highest) {
  const Result<std::int64_t> number = integer_of(path, value, unit, highest);
  if (!number || *number % unit != 0) {
    return invalid(path, path + " must be a multiple of " + std::to_string(unit) + " from " + std::to_string(unit) +
                             " to " + std::to_string(highest));
  }
  return static_cast<std::uint32_t>(*number);
}

struct PolicyFields {
  std::optional<PolicyKind> kind;
  std::optional<std::uint32_t> sinks;
  std::optional<std::uint32_t> window;
  std::optional<std::uint32_t> budget;
};

template <typename T>
Result<Done> set_once(const std::string& path, std::optional<T>& field, const Result<T>& value) {
  if (field) return invalid(path, path + " is given twice");
  if (!value) return value.error();
  field = *value;
  return Done{};
}

Result<Done> read_policy_field(const std::string& path, std::string_view key, element value, std::uint32_t highest,
                               PolicyFields& fields) {
  if (key == "type") return set_once(path, fields.kind, kind_of(path, value));
  if (key == "sinks") return set_once(path, fields.sinks, multiple_of(kGroup, path, value, highest));
  if (key == "window") return set_once(path, fields.window, multiple_of(kSpan, path, value, highest));
  if (key == "budget") return set_once(path, fields.budget, multiple_of(kGroup, path, value, highest));
  return unknown_field(path);
}

Result<flow::KvPolicy> policy_of(const std::string& name, const PolicyFields& fields, std::uint32_t max_model_len) {
  const auto missing = [&name](const char* field) { return invalid(name + field, name + field + " is missing"); };
  if (!fields.kind) return missing(".type");
  if (!fields.sinks) return missing(".sinks");
  if (!fields.window) return missing(".window");
  const bool accumulated_scores = *fields.kind == PolicyKind::kHeavyHitters;
  if (accumulated_scores && !fields.budget) return missing(".budget");
  if (!accumulated_scores && fields.budget) {
    return invalid(name + ".budget", name + ".budget is only for heavy_hitters: leave it out");
  }
  const std::uint64_t kept = std::uint64_t{*fields.sinks} + *fields.window + fields.budget.value_or(0);
  if (kept > max_model_len) {
    return invalid(name, name + " keeps " + std::to_string(kept) + " positions; the maximum is " +
                             std::to_string(max_model_len) + " (max_model_len): keep fewer, or leave it out");
  }
  return flow::KvPolicy{*fields.kind, *fields.sinks, *fields.window, fields.budget.value_or(0)};
}

}  // namespace

Result<Done> read_kv_policy(const std::string& name, element value, const Services& services,
                            GenerationRequest& request) {
  if (!value.is_object()) return invalid(name, name + " must be an object");
  if (services.model_window > 0) {
    return invalid(name, name + " is not supported by this model, whose own window is " +
                             std::to_string(services.model_window) + " positions: leave it out");
  }
  PolicyFields fields;
  const simdjson::dom::object object = object_of(value);
  for (const auto field : object) {
    if (field.value.is_null()) continue;
    const std::string path = name + "." + echoed(field.key);
    Result<Done> read = read_policy_field(path, field.key, field.value, services.max_model_len, fields);
    if (!read) return read.error();
  }
  Result<flow::KvPolicy> policy = policy_of(name, fields, services.max_model_len);
  if (!policy) return policy.error();
  request.kv_policy = *policy;
  return Done{};
}

}  // namespace quire::api
