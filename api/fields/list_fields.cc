#include "api/fields/list_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "api/fields/read_body.h"
#include "api/json/json_values.h"

namespace quire::api {
namespace {

using simdjson::dom::element;
using Type = simdjson::dom::element_type;

constexpr double kMaxBias = 100.0;  // OpenAI's limit

struct TextLimits {
  std::size_t texts;
  std::size_t bytes;  // of all texts together
};

Result<Done> append_text(const std::string& path, element value, const TextLimits& limits,
                         std::vector<std::string>& texts) {
  Result<std::string> text = string_of(path, value, limits.bytes);
  if (!text) return text.error();
  if (text->empty()) return invalid(path, path + " must not hold an empty string");
  texts.push_back(std::move(*text));
  return Done{};
}

Result<Done> append_texts(const std::string& path, element value, const TextLimits& limits,
                          std::vector<std::string>& texts) {
  if (!value.is_array()) return invalid(path, path + " must be a list of strings");
  std::size_t bytes = 0;
  const simdjson::dom::array list = array_of(value);
  for (const element one : list) {
    if (texts.size() == limits.texts) {
      return invalid(path, path + " may hold at most " + std::to_string(limits.texts) + " strings");
    }
    if (Result<Done> taken = append_text(path, one, limits, texts); !taken) return taken.error();
    bytes += texts.back().size();
    if (bytes > limits.bytes) {
      return invalid(
          path, "the strings of " + path + " may have at most " + std::to_string(limits.bytes) + " bytes together");
    }
  }
  return Done{};
}

Error not_an_id(const std::string& path, const Services& services) {
  return invalid(path, path + ": token ids are integers from 0 to " + std::to_string(services.logits_width - 1));
}

Result<TokenId> id_of_key(const std::string& path, std::string_view key, const Services& services) {
  std::uint32_t id = 0;
  const auto end = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool canonical =
      end.ec == std::errc() && end.ptr == key.data() + key.size() && (key.size() == 1 || key.front() != '0');
  if (!canonical || id >= services.logits_width) return not_an_id(path, services);
  return static_cast<TokenId>(id);
}

}  // namespace

Result<Done> read_model(const std::string& path, element value, const Services& services, GenerationRequest& request) {
  Result<std::string> model = string_of(path, value, std::numeric_limits<std::size_t>::max());
  if (!model) return model.error();
  if (model->empty()) return Done{};  // counts as not given
  if (!services.model_names.accepts(*model)) {
    std::string served;
    for (const std::string& one : services.model_names.listed()) served += (served.empty() ? "" : ", ") + one;
    return Error{Code::kNotFound, "model_not_found: this model is not served; served models: " + served, path, 0};
  }
  request.model = std::move(*model);
  return Done{};
}

Result<Done> read_stop(const std::string& path, element value, const Services& services, GenerationRequest& request) {
  const TextLimits limits{services.limits.max_stop_strings, services.limits.max_stop_bytes};
  if (value.is_array()) return append_texts(path, value, limits, request.stop);
  return append_text(path, value, limits, request.stop);
}

Result<Done> read_bad_words(const std::string& path, element value, const Services& services,
                            GenerationRequest& request) {
  return append_texts(path, value, {services.limits.max_bad_words, services.limits.max_bad_word_bytes},
                      request.bad_words);
}

Result<std::vector<TokenId>> token_ids_of(const std::string& path, element value, const Services& services,
                                          std::size_t most) {
  if (!value.is_array()) return invalid(path, path + " must be a list of token ids");
  std::vector<TokenId> ids;
  const simdjson::dom::array list = array_of(value);
  for (const element one : list) {
    const std::int64_t id = one.type() == Type::INT64 ? one.get_int64().value_unsafe() : -1;
    if (!(id >= 0 && id < std::int64_t{services.logits_width})) return not_an_id(path, services);
    if (ids.size() == most) return invalid(path, path + " may hold at most " + std::to_string(most) + " token ids");
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

Result<Done> read_stop_token_ids(const std::string& path, element value, const Services& services,
                                 GenerationRequest& request) {
  Result<std::vector<TokenId>> ids = token_ids_of(path, value, services, services.limits.max_stop_token_ids);
  if (!ids) return ids.error();
  request.stop_token_ids = std::move(*ids);
  return Done{};
}

Result<Done> read_allowed_token_ids(const std::string& path, element value, const Services& services,
                                    GenerationRequest& request) {
  Result<std::vector<TokenId>> ids = token_ids_of(path, value, services, services.logits_width);
  if (!ids) return ids.error();
  if (ids->empty()) return invalid(path, path + " must not be empty: leave it out to allow all tokens");
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
  request.rules.allowed = std::move(*ids);
  return Done{};
}

Result<Done> read_logit_bias(const std::string& path, element value, const Services& services,
                             GenerationRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object: token ids to numbers");
  const simdjson::dom::object biases = object_of(value);
  if (biases.size() > services.limits.max_logit_bias) {
    return invalid(path, path + " may hold at most " + std::to_string(services.limits.max_logit_bias) + " token ids");
  }
  std::vector<sample::Bias>& out = request.rules.bias;
  for (const auto one : biases) {
    const Result<TokenId> id = id_of_key(path, one.key, services);
    if (!id) return id.error();
    const Result<double> add = number_of(path + '.' + std::to_string(*id), one.value, "from -100 to 100",
                                         [](double x) { return x >= -kMaxBias && x <= kMaxBias; });
    if (!add) return add.error();
    out.push_back({*id, static_cast<float>(*add)});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
  const auto twice =
      std::adjacent_find(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.token == b.token; });
  if (twice != out.end()) return invalid(path, path + " holds " + std::to_string(twice->token) + " twice");
  return Done{};
}

Result<Done> read_stream_options(const std::string& path, element value, const Services&, GenerationRequest& request) {
  if (!value.is_object()) return invalid(path, path + " must be an object");
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    if (field.value.is_null()) continue;
    const std::string inner = path + "." + echoed(field.key);
    const bool usage = field.key == "include_usage";
    const bool continuous = field.key == "continuous_usage_stats";
    if (!usage && !continuous && field.key != "include_obfuscation") {
      pass_over(request, inner);
      continue;
    }
    const Result<bool> flag = boolean_of(inner, field.value);
    if (!flag) return flag.error();
    if (usage) {
      request.include_usage = *flag;
    } else if (continuous) {
      request.continuous_usage = *flag;
    } else if (*flag) {
      return invalid(inner, inner + " is not supported: leave it out");
    }
  }
  return Done{};
}

}  // namespace quire::api
