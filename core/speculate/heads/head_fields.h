// Reader of config.json for heads without layers of their own (Medusa, Hydra), which collects all problems. A key that
// no reader names is rejected: it may change what the heads compute.
// Owner   the loader; it borrows the fields and the target's config.
// Thread  one, at startup.
// Fails   read_head_fields(): StartError.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <span>
#include <string>

#include "core/model/arch/config.h"
#include "core/model/source/json_fields.h"
#include "core/model/source/model_files.h"
#include "core/speculate/problems.h"

namespace quire::speculate {

class HeadFields {
 public:
  HeadFields(const model::JsonFields& fields, const model::ModelSpec& target);

  bool has(const char* key) const { return fields_.has(key); }
  // The field; if it is missing or wrong, adds a problem and returns `otherwise`.
  std::uint32_t uint(const char* key, std::uint64_t low, std::uint64_t high, std::uint32_t otherwise = 1);
  bool flag(const char* key);         // false if missing
  std::string text(const char* key);  // empty if missing
  void expect_sizes_of_target();      // hidden_size and vocab_size, if they are given
  void mismatch(const char* key, const std::string& expected);
  void refuse_others(std::span<const char* const> known);
  const Problems& problems() const { return problems_; }

 private:
  void expect(const char* key, std::uint32_t value);

  const model::JsonFields& fields_;
  const model::ModelSpec& target_;
  Problems problems_;
};

// Result of `read` on the file's fields. `whose`: whose config it is, for the error: "Medusa heads".
template <typename Read>
auto read_head_fields(const model::ModelFiles& files, const model::ModelSpec& target, const std::string& whose,
                      const Read& read) {
  const model::FileBytes bytes = files.require("config.json");
  const std::string name = files.describe("config.json");
  const boost::json::object object =
      model::parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  const model::JsonFields fields(object, name);
  HeadFields head(fields, target);
  auto config = read(head);
  head.problems().throw_if_any(name + " is not the config of supported " + whose);
  return config;
}

}  // namespace quire::speculate
