// One JSON Schema document: its schemas by number, the JSON pointer of each, and the targets of $ref.
// Shape   a schema is an object, true or false. The last two have numbers from the start: kAnything and kNothing.
// Owner   borrows the document, which outlives it.
// Fails   throws Refusal: the pointer of the fault, and a message that says what to do; and what WriteBudget throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/json.h"
#include "core/grammar/language/language.h"

namespace quire::grammar {

struct Refusal {
  std::string pointer;  // JSON pointer of the keyword or schema at fault
  std::string message;
};

using SchemaId = std::uint32_t;
inline constexpr SchemaId kAnything = 0;
inline constexpr SchemaId kNothing = 1;

// A text of the caller's, cut to the length that an error repeats.
std::string shown(std::string_view text);

class Document {
 public:
  Document(const json::Value& root, std::uint32_t max_schemas, StateBudget& budget);
  Document(const Document&) = delete;

  SchemaId root() { return add(root_, ""); }
  const json::Object* object(SchemaId id) const { return schemas_[id].value->if_object(); }  // null: true or false
  const std::string& pointer(SchemaId id) const { return schemas_[id].pointer; }
  bool items_may_be_a_list() const { return old_draft_; }

  // The schema that is the value of a keyword, or is in that value under a name or an index.
  SchemaId below(SchemaId parent, std::string_view keyword);
  SchemaId below(SchemaId parent, std::string_view keyword, std::string_view name);
  SchemaId below(SchemaId parent, std::string_view keyword, std::size_t index);

  SchemaId target(SchemaId from, std::string_view reference);  // of the $ref in `from`

  [[noreturn]] void refuse(SchemaId at, std::string_view keyword, std::string message) const;
  [[noreturn]] void refuse_too_large(SchemaId at, std::uint32_t max_states) const;

 private:
  struct Schema {
    const json::Value* value;
    std::string pointer;
  };
  struct Place {
    const json::Value* value;
    std::string pointer;
  };
  SchemaId add(const json::Value& value, std::string pointer);
  void read_draft();
  void check_keywords(const json::Object& object, const std::string& pointer) const;
  void find_anchors(const json::Value& value, const std::string& pointer);
  std::string step(const std::string& pointer, std::string_view name) const;
  Place follow(SchemaId from, std::string_view path) const;

  const json::Value true_{true};
  const json::Value false_{false};
  const json::Value& root_;
  std::uint32_t max_schemas_;
  StateBudget& budget_;  // charged for pointers: long names over many schemas
  bool old_draft_ = false;
  std::vector<Schema> schemas_;
  std::unordered_map<const json::Value*, SchemaId> numbers_;
  std::optional<std::map<std::string, Place, std::less<>>> anchors_;
};

}  // namespace quire::grammar
