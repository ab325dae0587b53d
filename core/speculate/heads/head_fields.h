// config.json of heads that stand beside a target and have no layers of their own, field by field, with all that is wrong told at
// once. A key that nobody names is refused: it may change what the heads compute.
// Owner   whoever loads; it borrows the fields and the target's config.
// Thread  one, while starting.
// Fails   read_head_fields(): StartError.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "core/model/config.h"
#include "core/model/json_fields.h"
#include "core/model/model_files.h"
#include "core/speculate/problems.h"

namespace quire::speculate {

class HeadFields {
 public:
  HeadFields(const model::JsonFields& fields, const model::Config& target);

  bool has(const char* key) const { return fields_.has(key); }
  // Where the field is missing or wrong: told, and `otherwise`.
  std::uint32_t uint(const char* key, std::uint64_t low, std::uint64_t high, std::uint32_t otherwise = 1);
  bool flag(const char* key);         // false where it is missing
  std::string text(const char* key);  // empty where it is missing
  void expect_sizes_of_target();      // where they are said
  void mismatch(const char* key, const std::string& expected);
  void refuse_others(std::span<const char* const> known);
  const Problems& problems() const { return problems_; }

 private:
  void expect(const char* key, std::uint32_t value);

  const model::JsonFields& fields_;
  const model::Config& target_;
  Problems problems_;
};

// What `read` makes of the file's fields; `whose`: "Medusa heads'".
template <typename Read>
auto read_head_fields(const model::ModelFiles& files, const model::Config& target, const std::string& whose,
                      const Read& read) {
  const model::FileBytes bytes = files.require("config.json");
  const std::string name = files.describe("config.json");
  const boost::json::object object =
      model::parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  const model::JsonFields fields(object, name);
  HeadFields head(fields, target);
  auto config = read(head);
  head.problems().throw_if_any(name + " is not " + whose + " that can be read");
  return config;
}

}  // namespace quire::speculate
