#include "api/openai/completion_request.h"

#include <simdjson.h>

#include <algorithm>
#include <bitset>
#include <iterator>
#include <limits>

#include "api/openai/cache_fields.h"
#include "api/openai/choice_fields.h"
#include "api/openai/json_values.h"

namespace quire::api::openai {
namespace {

using simdjson::dom::element;
using Type = simdjson::dom::element_type;

constexpr std::size_t kMaxDepth = 8;     // [[ids]] is three deep
constexpr double kMaxTemperature = 2.0;  // OpenAI's
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMinParserBytes = 64;

// ---- prompts

Result<std::vector<TokenId>> ids_of(simdjson::dom::array array, const Services& services) {
  std::vector<TokenId> ids;
  for (const element value : array) {
    const std::int64_t id = value.type() == Type::INT64 ? value.get_int64().value_unsafe() : -1;
    if (!(id >= 0 && id < std::int64_t{services.logits_width})) {
      return invalid("prompt", "prompt: token ids are integers from 0 to " + std::to_string(services.logits_width - 1));
    }
    if (ids.size() + 1 >= services.max_model_len) {
      return invalid("prompt", "prompt has " + std::to_string(services.max_model_len) +
                                   " tokens or more; the model takes at most " +
                                   std::to_string(services.max_model_len) +
                                   " (max_model_len), prompt and answer together: shorten the prompt");
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  if (ids.empty()) return invalid("prompt", "prompt: a list of token ids must not be empty");
  return ids;
}

constexpr const char* kPromptShape =
    "prompt must be a string, a list of strings, a list of token ids, or a list of lists of token ids";

// A list whose elements must all be of the first one's kind.
Result<std::vector<Prompt>> prompts_of(simdjson::dom::array array, const Services& services) {
  std::vector<Prompt> prompts;
  const Type kind = (*array.begin()).type();
  for (const element value : array) {
    if (value.type() != kind) return invalid("prompt", kPromptShape);
    if (prompts.size() == services.limits.max_prompts) {
      return invalid("prompt", "prompt may be a list of at most " + std::to_string(services.limits.max_prompts) +
                                   " prompts: send the others in further requests");
    }
    if (value.is_string()) {
      prompts.emplace_back(std::string(value.get_string().value_unsafe()));
    } else {
      Result<std::vector<TokenId>> ids = ids_of(array_of(value), services);
      if (!ids) return ids.error();
      prompts.emplace_back(std::move(*ids));
    }
  }
  return prompts;
}

Result<Done> read_prompt(const std::string& name, element value, const Services& services, CompletionRequest& request) {
  if (value.is_string()) {
    request.prompts.emplace_back(std::string(value.get_string().value_unsafe()));
    return Done{};
  }
  if (!value.is_array()) return invalid(name, kPromptShape);
  const simdjson::dom::array array = array_of(value);
  if (array.begin() == array.end()) return invalid(name, "prompt must not be an empty list");
  const Type first = (*array.begin()).type();
  if (first == Type::STRING || first == Type::ARRAY) {
    Result<std::vector<Prompt>> prompts = prompts_of(array, services);
    if (!prompts) return prompts.error();
    request.prompts = std::move(*prompts);
    return Done{};
  }
  if (first != Type::INT64 && first != Type::UINT64) return invalid(name, kPromptShape);
  Result<std::vector<TokenId>> ids = ids_of(array, services);
  if (!ids) return ids.error();
  request.prompts.emplace_back(std::move(*ids));
  return Done{};
}

// ---- the other fields we honour; a null never comes here, it means "not given"

Result<Done> read_model(const std::string& name, element value, const Services& services, CompletionRequest& request) {
  Result<std::string> model = string_of(name, value, std::numeric_limits<std::size_t>::max());
  if (!model) return model.error();
  const std::vector<std::string>& names = services.model_names;
  if (std::find(names.begin(), names.end(), *model) == names.end()) {
    std::string served;
    for (const std::string& one : names) served += (served.empty() ? "" : ", ") + one;
    return Error{Code::kNotFound, "model_not_found: this model is not served here; GET /v1/models lists: " + served,
                 name, 0};
  }
  request.model = std::move(*model);
  return Done{};
}

Result<Done> read_max_tokens(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<std::int64_t> number = integer_of(name, value, 1, kMaxInt32);
  if (!number) return number.error();
  request.max_tokens = static_cast<std::uint32_t>(*number);
  return Done{};
}

Result<Done> read_temperature(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<double> number =
      number_of(name, value, "from 0 to 2", [](double x) { return x >= 0.0 && x <= kMaxTemperature; });
  if (!number) return number.error();
  request.sampling.temperature = static_cast<float>(*number);
  return Done{};
}

Result<Done> read_top_p(const std::string& name, element value, const Services&, CompletionRequest& request) {
  // As f32, too: a double so small that it becomes 0 is refused.
  const Result<double> number =
      number_of(name, value, "above 0 and up to 1", [](double x) { return static_cast<float>(x) > 0.0f && x <= 1.0; });
  if (!number) return number.error();
  request.sampling.top_p = static_cast<float>(*number);
  return Done{};
}

Result<Done> read_min_p(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<double> number = number_of(name, value, "from 0 to 1", [](double x) { return x >= 0.0 && x <= 1.0; });
  if (!number) return number.error();
  request.sampling.min_p = static_cast<float>(*number);
  return Done{};
}

Result<Done> read_top_k(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<std::int64_t> number = integer_of(name, value, -1, kMaxInt32);  // -1 and 0 both keep all
  if (!number) return number.error();
  request.sampling.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(*number, 0));
  return Done{};
}

Result<Done> read_seed(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<std::int64_t> number =
      integer_of(name, value, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  if (!number) return number.error();
  request.seed = *number;
  return Done{};
}

Result<Done> read_stop(const std::string& name, element value, const Services& services, CompletionRequest& request) {
  const RequestLimits& limits = services.limits;
  const auto take = [&](element one) -> Result<Done> {
    Result<std::string> text = string_of(name, one, limits.max_stop_bytes);
    if (!text) return text.error();
    if (text->empty()) return invalid(name, "stop must not hold an empty string");
    request.stop.push_back(std::move(*text));
    return Done{};
  };
  if (!value.is_array()) return take(value);
  std::size_t bytes = 0;
  const simdjson::dom::array strings = array_of(value);
  for (const element one : strings) {
    if (request.stop.size() == limits.max_stop_strings) {
      return invalid(name, "stop may hold at most " + std::to_string(limits.max_stop_strings) + " strings");
    }
    if (Result<Done> taken = take(one); !taken) return taken.error();
    bytes += request.stop.back().size();
    if (bytes > limits.max_stop_bytes) {
      return invalid(name,
                     "the stop strings may have at most " + std::to_string(limits.max_stop_bytes) + " bytes together");
    }
  }
  return Done{};
}

Result<Done> read_stream(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<bool> flag = boolean_of(name, value);
  if (!flag) return flag.error();
  request.stream = *flag;
  return Done{};
}

Result<Done> read_ignore_eos(const std::string& name, element value, const Services&, CompletionRequest& request) {
  const Result<bool> flag = boolean_of(name, value);
  if (!flag) return flag.error();
  request.ignore_eos = *flag;
  return Done{};
}

Result<Done> read_user(const std::string& name, element value, const Services& services, CompletionRequest&) {
  const Result<std::string> user = string_of(name, value, services.limits.max_user_bytes);
  if (!user) return user.error();
  return Done{};  // checked, and of no effect: nothing here is kept per user
}

Result<Done> read_stream_options(const std::string& name, element value, const Services&, CompletionRequest& request) {
  if (!value.is_object()) return invalid(name, "stream_options must be an object");
  const simdjson::dom::object fields = object_of(value);
  for (const auto field : fields) {
    const std::string path = name + "." + echoed(field.key);
    if (field.value.is_null()) continue;
    const Result<bool> flag = boolean_of(path, field.value);
    if (field.key == "include_usage") {
      if (!flag) return flag.error();
      request.include_usage = *flag;
    } else if (field.key == "continuous_usage_stats" || field.key == "include_obfuscation") {
      if (!flag) return flag.error();
      if (*flag) return invalid(path, path + " is not supported yet: leave it out");
    } else {
      return unknown_field(path);
    }
  }
  return Done{};
}

struct Honoured {
  const char* name;
  Result<Done> (*read)(const std::string&, element, const Services&, CompletionRequest&);
};

constexpr Honoured kHonoured[] = {
    {"model", read_model},
    {"prompt", read_prompt},
    {"max_tokens", read_max_tokens},
    {"temperature", read_temperature},
    {"top_p", read_top_p},
    {"top_k", read_top_k},
    {"min_p", read_min_p},
    {"seed", read_seed},
    {"stop", read_stop},
    {"stream", read_stream},
    {"stream_options", read_stream_options},
    {"ignore_eos", read_ignore_eos},
    {"user", read_user},
    {"n", read_n},
    {"best_of", read_best_of},
    {"use_beam_search", read_use_beam_search},
    {"length_penalty", read_length_penalty},
    {"cache_salt", read_cache_salt},
    {"priority", read_priority},
    {"deadline_ms", read_deadline_ms},
    {"kv_policy", read_kv_policy},
};

// ---- fields of OpenAI and vLLM that are not supported yet: only what changes nothing is accepted

bool is_never(element) { return false; }  // null alone
bool is_zero(element value) { return value.is_number() && value.get_double().value_unsafe() == 0.0; }
bool is_one(element value) { return value.is_number() && value.get_double().value_unsafe() == 1.0; }
bool is_false(element value) { return value.is_bool() && !value.get_bool().value_unsafe(); }
bool is_true(element value) { return value.is_bool() && value.get_bool().value_unsafe(); }
bool is_empty(element value) {
  if (value.is_array()) return array_of(value).size() == 0;
  return value.is_object() && object_of(value).size() == 0;
}
bool is_text_format(element value) {
  std::string_view type;
  return value.is_object() && object_of(value).size() == 1 &&
         value["type"].get_string().get(type) == simdjson::SUCCESS && type == "text";
}

struct NotYet {
  const char* name;
  bool (*is_neutral)(element);
};

constexpr NotYet kNotYet[] = {
    {"echo", is_false},
    {"logprobs", is_never},
    {"suffix", is_never},
    {"logit_bias", is_empty},
    {"presence_penalty", is_zero},
    {"frequency_penalty", is_zero},
    {"repetition_penalty", is_one},
    {"typical_p", is_one},
    {"min_tokens", is_zero},
    {"stop_token_ids", is_empty},
    {"bad_words", is_empty},
    {"allowed_token_ids", is_never},
    {"logits_processors", is_empty},
    {"include_stop_str_in_output", is_false},
    {"skip_special_tokens", is_true},
    {"spaces_between_special_tokens", is_true},
    {"add_special_tokens", is_true},
    {"truncate_prompt_tokens", is_never},
    {"prompt_logprobs", is_never},
    {"prompt_embeds", is_never},
    {"response_format", is_text_format},
    {"structured_outputs", is_never},
    {"guided_json", is_never},
    {"guided_regex", is_never},
    {"guided_choice", is_never},
    {"guided_grammar", is_never},
    {"guided_decoding_backend", is_never},
    {"request_id", is_never},
    {"return_token_ids", is_false},
    {"return_tokens_as_token_ids", is_false},
    {"kv_transfer_params", is_never},
    {"vllm_xargs", is_empty},
    {"repetition_detection", is_never},
};

// ---- the body

using Fields = std::bitset<std::size(kHonoured)>;

std::size_t field_of(std::string_view name) {
  std::size_t i = 0;
  while (i < std::size(kHonoured) && name != kHonoured[i].name) ++i;
  return i;
}

Result<Done> read_field(std::string_view key, element value, const Services& services, CompletionRequest& request,
                        Fields& seen, Fields& given) {
  if (const std::size_t i = field_of(key); i < std::size(kHonoured)) {
    if (seen[i]) return invalid(kHonoured[i].name, std::string(key) + " is given twice");
    seen[i] = true;
    if (value.is_null()) return Done{};
    given[i] = true;
    return kHonoured[i].read(kHonoured[i].name, value, services, request);
  }
  for (const NotYet& field : kNotYet) {
    if (key != field.name) continue;
    if (value.is_null() || field.is_neutral(value)) return Done{};
    return invalid(field.name, std::string(key) + " is not supported yet: leave it out");
  }
  return unknown_field(echoed(key));
}

}  // namespace

Result<CompletionRequest> parse_completion_request(const std::string& body, const Services& services) {
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.allocate(std::max(body.size(), kMinParserBytes), kMaxDepth))
    return parse_failure(error);
  if (const auto error = parser.parse(body).get(root)) return parse_failure(error);
  if (!root.is_object()) return invalid("", "the body must be a JSON object");

  CompletionRequest request;
  request.model = services.model_names.front();
  request.sampling = services.defaults;
  Fields seen;
  Fields not_null;
  const simdjson::dom::object fields = object_of(root);
  for (const auto field : fields) {
    Result<Done> read = read_field(field.key, field.value, services, request, seen, not_null);
    if (!read) return read.error();
  }
  const Given given = [&not_null](std::string_view name) { return not_null.test(field_of(name)); };
  if (request.prompts.empty()) return invalid("prompt", "prompt is missing");
  if (given("stream_options") && !request.stream) {
    return invalid("stream_options", "stream_options needs \"stream\": true");
  }
  if (Result<Done> settled = settle_choices(request, services, given); !settled) return settled.error();
  return request;
}

}  // namespace quire::api::openai
