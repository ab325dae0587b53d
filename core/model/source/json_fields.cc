#include "core/model/source/json_fields.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <sstream>
#include <utility>

#include "core/base/log.h"
#include "core/base/readable_json.h"
#include "core/base/start_error.h"

namespace quire::model {
namespace json = boost::json;
namespace {

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string range_text(const char* what, const std::string& low, const std::string& high) {
  return std::string("expected ") + what + " in [" + low + ", " + high + "]";
}

std::optional<std::uint64_t> as_uint(const json::value& value) {
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<std::uint64_t>(value.get_int64());
  if (value.is_uint64()) return value.get_uint64();
  return std::nullopt;
}

}  // namespace

json::object parse_object(std::string_view text, const std::string& file) {
  json::error_code error;
  json::value document = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) document = json::parse(readable_json(text), error);
  if (error) throw StartError(file + " is not valid JSON: " + error.message());
  if (!document.is_object()) throw StartError(file + ": expected a JSON object at the top");
  return std::move(document.get_object());
}

JsonFields::JsonFields(const json::object& object, std::string file, std::string prefix)
    : object_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {}

const json::value* JsonFields::value(std::string_view key) const {
  const json::value* found = object_->if_contains(json::string_view(key.data(), key.size()));
  return found == nullptr || found->is_null() ? nullptr : found;
}

void JsonFields::refuse(std::string_view key, const std::string& what) const {
  throw StartError(file_ + ": key '" + prefix_ + log_safe(key) + "' " + what);
}

void JsonFields::mismatch(std::string_view key, const std::string& expected) const {
  const json::value* found = value(key);
  if (found == nullptr) refuse(key, "is missing; " + expected);
  const std::string text = json::serialize(*found);
  refuse(key, "is " + log_safe(text) + " (" + std::string(json::to_string(found->kind())) + "); " + expected);
}

std::optional<std::uint64_t> JsonFields::optional_uint(std::string_view key, std::uint64_t low,
                                                       std::uint64_t high) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> number = as_uint(*found);
  if (!number || *number < low || *number > high) {
    mismatch(key, range_text("an integer", std::to_string(low), std::to_string(high)));
  }
  return number;
}

std::uint64_t JsonFields::require_uint(std::string_view key, std::uint64_t low, std::uint64_t high) const {
  if (!has(key)) mismatch(key, range_text("an integer", std::to_string(low), std::to_string(high)));
  return *optional_uint(key, low, high);
}

std::optional<double> JsonFields::optional_number(std::string_view key, double low, double high) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  const double number = found->is_number() ? found->to_number<double>() : std::nan("");
  if (!(number >= low && number <= high)) mismatch(key, range_text("a number", number_text(low), number_text(high)));
  return number;
}

double JsonFields::require_number(std::string_view key, double low, double high) const {
  if (!has(key)) mismatch(key, range_text("a number", number_text(low), number_text(high)));
  return *optional_number(key, low, high);
}

std::optional<bool> JsonFields::optional_bool(std::string_view key) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_bool()) mismatch(key, "expected true or false");
  return found->get_bool();
}

std::optional<std::string> JsonFields::optional_string(std::string_view key) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) mismatch(key, "expected a string");
  return std::string(found->get_string());
}

std::string JsonFields::require_string(std::string_view key) const {
  if (!has(key)) mismatch(key, "expected a string");
  return *optional_string(key);
}

std::optional<std::vector<std::string>> JsonFields::optional_strings(std::string_view key) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  std::vector<std::string> strings;
  if (!found->is_array()) mismatch(key, "expected a list of strings");
  for (const json::value& item : found->get_array()) {
    if (!item.is_string()) mismatch(key, "expected a list of strings");
    strings.emplace_back(item.get_string());
  }
  return strings;
}

template <typename Take>
void JsonFields::for_each(std::string_view key, const Take& take) const {
  const json::value* found = value(key);
  if (found == nullptr) return;
  if (found->is_array()) {
    for (const json::value& item : found->get_array()) take(item);
  } else {
    take(*found);
  }
}

std::vector<double> JsonFields::numbers(std::string_view key, double low, double high) const {
  std::vector<double> out;
  const json::value* found = value(key);
  if (found == nullptr) return out;
  if (!found->is_array()) mismatch(key, "expected a list of numbers");
  for (const json::value& item : found->get_array()) {
    const double number = item.is_number() ? item.to_number<double>() : std::nan("");
    if (!(number >= low && number <= high)) {
      mismatch(key, range_text("numbers", number_text(low), number_text(high)));
    }
    out.push_back(number);
  }
  return out;
}

bool JsonFields::is_array(std::string_view key) const {
  const json::value* found = value(key);
  return found != nullptr && found->is_array();
}

bool JsonFields::is_null(std::string_view key) const {
  const json::value* found = object_->if_contains(json::string_view(key.data(), key.size()));
  return found != nullptr && found->is_null();
}

std::vector<std::uint64_t> JsonFields::uint_or_list(std::string_view key, std::uint64_t high) const {
  std::vector<std::uint64_t> numbers;
  for_each(key, [&](const json::value& item) {
    const std::optional<std::uint64_t> number = as_uint(item);
    if (!number || *number > high) {
      mismatch(key, "expected an integer in [0, " + std::to_string(high) + "] or a list of them");
    }
    numbers.push_back(*number);
  });
  return numbers;
}

std::vector<TokenId> JsonFields::token_ids(std::string_view key, std::uint32_t vocab) const {
  std::vector<TokenId> ids;
  for_each(key, [&](const json::value& item) {
    const bool is_part = item.is_double() && item.get_double() != std::floor(item.get_double());
    if (!item.is_number() || is_part) mismatch(key, "expected a token's id or a list of them");
    if (const std::optional<std::uint64_t> id = as_uint(item); id && *id < vocab) {
      ids.push_back(static_cast<TokenId>(*id));
    } else {
      log_warn("checkpoint", "{}: key '{}{}': {} is not one of the {} token ids and is ignored", file_, prefix_, key,
               json::serialize(item), vocab);
    }
  });
  return ids;
}

std::optional<JsonFields> JsonFields::optional_object(std::string_view key) const {
  const json::value* found = value(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_object()) mismatch(key, "expected an object");
  return JsonFields(found->get_object(), file_, prefix_ + std::string(key) + ".");
}

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, item] : *object_) {
    if (!item.is_null()) names.emplace_back(key);
  }
  return names;
}

}  // namespace quire::model
