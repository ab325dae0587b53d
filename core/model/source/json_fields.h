// One JSON object, read key by key. Every error names file and key:
//   DIR/config.json: key 'vocab_size' is "x" (string); expected an integer in [1, 1048576]
// Shape   a key that is absent or null has no value: optional_*() returns nothing, require_*() throws.
// Owner   borrows the object; the document outlives it.
// Fails   StartError.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace quire::model {

// Parses the document, whose top must be an object. Errors name the file.
boost::json::object parse_object(std::string_view text, const std::string& file);

class JsonFields {
 public:
  // `prefix`: dotted path of this object inside the file, "" for the top object.
  JsonFields(const boost::json::object& object, std::string file, std::string prefix = "");

  bool has(std::string_view key) const { return value(key) != nullptr; }
  std::optional<std::uint64_t> optional_uint(std::string_view key, std::uint64_t low, std::uint64_t high) const;
  std::uint64_t require_uint(std::string_view key, std::uint64_t low, std::uint64_t high) const;
  std::optional<double> optional_number(std::string_view key, double low, double high) const;
  double require_number(std::string_view key, double low, double high) const;
  std::optional<bool> optional_bool(std::string_view key) const;
  std::optional<std::string> optional_string(std::string_view key) const;
  std::string require_string(std::string_view key) const;
  std::optional<std::vector<std::string>> optional_strings(std::string_view key) const;
  // A list of numbers; empty if the key is absent.
  std::vector<double> numbers(std::string_view key, double low, double high) const;
  // True if the key is there and null.
  bool is_null(std::string_view key) const;
  bool is_array(std::string_view key) const;
  // One integer or a list of integers.
  std::vector<std::uint64_t> uint_or_list(std::string_view key, std::uint64_t high) const;
  // One token id or a list of them. Numbers outside the vocabulary (merged models can have another parent's ids) are
  // logged and left out.
  std::vector<TokenId> token_ids(std::string_view key, std::uint32_t vocab) const;
  std::optional<JsonFields> optional_object(std::string_view key) const;
  const boost::json::object& object() const { return *object_; }
  // Another object's values under the same names in errors.
  JsonFields with(const boost::json::object& object) const { return {object, file_, prefix_}; }
  // All keys with a value.
  std::vector<std::string> keys() const;

  // "DIR/config.json: key 'rope_scaling.factor' " + what
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;
  // As refuse(), with the value found: "… is 3, expected " + expected
  [[noreturn]] void mismatch(std::string_view key, const std::string& expected) const;

 private:
  const boost::json::value* value(std::string_view key) const;  // null if the key is absent or JSON null
  // Calls take() with the value, or with each item if it is a list.
  template <typename Take>
  void for_each(std::string_view key, const Take& take) const;

  const boost::json::object* object_;
  std::string file_;
  std::string prefix_;
};

}  // namespace quire::model
