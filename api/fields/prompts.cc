#include "api/fields/prompts.h"

#include <limits>
#include <utility>

#include "api/fields/list_fields.h"
#include "api/json/json_values.h"

namespace quire::api {
namespace {

using simdjson::dom::element;
using Type = simdjson::dom::element_type;

Error wrong_shape(const std::string& name) {
  return invalid(name,
                 name + " must be a string, a list of strings, a list of token ids, or a list of lists of token ids");
}

Result<Prompt> ids_of(const std::string& name, element value, const Services& services) {
  Result<std::vector<TokenId>> ids = token_ids_of(name, value, services, std::numeric_limits<std::size_t>::max());
  if (!ids) return ids.error();
  if (ids->empty()) return invalid(name, name + ": a list of token ids must not be empty");
  return Prompt(std::move(*ids));
}

Result<Prompt> prompt_of(const std::string& name, element value, const Services& services) {
  if (value.is_string()) return Prompt(std::string(value.get_string().value_unsafe()));
  return ids_of(name, value, services);
}

}  // namespace

Result<std::vector<Prompt>> prompts_of(const std::string& name, element value, const Services& services,
                                       std::uint32_t most) {
  std::vector<Prompt> prompts;
  const auto add = [&](Result<Prompt> prompt) -> Result<Done> {
    if (!prompt) return prompt.error();
    prompts.push_back(std::move(*prompt));
    return Done{};
  };
  if (value.is_string()) {
    if (Result<Done> added = add(prompt_of(name, value, services)); !added) return added.error();
    return prompts;
  }
  if (!value.is_array()) return wrong_shape(name);
  const simdjson::dom::array array = array_of(value);
  if (array.begin() == array.end()) return invalid(name, name + " must not be an empty list");
  const Type kind = (*array.begin()).type();
  if (kind == Type::INT64 || kind == Type::UINT64) {
    if (Result<Done> added = add(ids_of(name, value, services)); !added) return added.error();
    return prompts;
  }
  if (kind != Type::STRING && kind != Type::ARRAY) return wrong_shape(name);
  for (const element one : array) {  // every item has the first one's kind
    if (one.type() != kind) return wrong_shape(name);
    if (prompts.size() == most) {
      return invalid(name, name + " may be a list of at most " + std::to_string(most) +
                               " prompts: send the others in further requests");
    }
    if (Result<Done> added = add(prompt_of(name, one, services)); !added) return added.error();
  }
  return prompts;
}

}  // namespace quire::api
