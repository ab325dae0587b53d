#include "core/grammar/schema/shape_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/grammar/schema/formats.h"
#include "core/grammar/text/regex.h"

namespace quire::grammar {
namespace {

constexpr std::size_t kMaxPatterns = 4;  // of one object: n patterns make 2^n kinds of keys
constexpr std::uint32_t kMaxCount = 1'000'000;
constexpr std::uint32_t kMaxMultiple = 10'000;

// True if the value contains a number of 2^63 or more: the parser makes a double of it, and its digits are lost.
bool has_huge_number(const json::Value& v) {
  if (v.is_double()) return std::abs(v.get_double()) >= 0x1p63;
  if (const auto* list = v.if_array()) return std::ranges::any_of(*list, has_huge_number);
  const auto* object = v.if_object();
  return object != nullptr &&
         std::ranges::any_of(*object, [](const auto& item) { return has_huge_number(item.value); });
}

class Reader {
 public:
  Reader(Document& document, SchemaId id, const ShapeLimits& limits, StateBudget& budget)
      : document_(document), id_(id), object_(*document.object(id)), limits_(limits), budget_(budget) {}

  Shape read() {
    read_type();
    read_values();
    read_number();
    read_string();
    read_array();
    read_object();
    return std::move(shape_);
  }

 private:
  [[noreturn]] void refuse(std::string_view keyword, std::string message) const {
    document_.refuse(id_, keyword, std::move(message));
  }
  const json::Value* find(std::string_view keyword) const { return object_.if_contains(keyword); }

  void read_type() {
    const json::Value* type = find("type");
    if (type == nullptr) return;
    shape_.types = 0;
    if (type->is_string()) {
      shape_.types = type_named(*type);
    } else if (type->is_array() && !type->get_array().empty()) {
      for (const json::Value& one : type->get_array()) shape_.types |= type_named(one);
    } else {
      refuse("type", "is not a type name or a list of type names");
    }
  }

  std::uint8_t type_named(const json::Value& name) const {
    static constexpr std::pair<std::string_view, std::uint8_t> kNames[] = {
        {"null", kNull},     {"boolean", kBoolean}, {"integer", kInteger}, {"number", kNumber},
        {"string", kString}, {"array", kArray},     {"object", kObject}};
    for (const auto& [known, bits] : kNames) {
      if (name.is_string() && std::string_view(name.get_string()) == known) return bits;
    }
    refuse("type", "is not one of null, boolean, integer, number, string, array, object");
  }

  void read_values() {
    for (const std::string_view keyword : {"const", "enum"}) {
      const json::Value* values = find(keyword);
      if (values != nullptr && has_huge_number(*values))
        refuse(keyword, "has a number of 2^63 or more: write it as a string");
    }
    if (const json::Value* one = find("const")) shape_.values = {listed(*one, budget_)};
    const json::Value* list = find("enum");
    if (list == nullptr) return;
    if (!list->is_array() || list->get_array().empty()) refuse("enum", "is not a list with at least one value");
    if (list->get_array().size() > limits_.max_values) {
      refuse("enum", "has more than " + std::to_string(limits_.max_values) + " values");
    }
    Shape all;
    all.values.emplace();
    for (const json::Value& one : list->get_array()) all.values->push_back(listed(one, budget_));
    shape_ = merged(shape_, all, budget_);
  }

  std::optional<Bound> read_bound(std::string_view keyword, bool open) const {
    const json::Value* bound = find(keyword);
    if (bound == nullptr) return std::nullopt;
    if (!bound->is_number()) refuse(keyword, "is not a number");
    const auto decimal = decimal_of(*bound);
    if (!decimal) refuse(keyword, "has more than 15 significant digits: round it");
    return Bound{*decimal, open};
  }

  void read_number() {
    Shape bounds;
    bounds.low = read_bound("minimum", false);
    bounds.high = read_bound("maximum", false);
    shape_ = merged(shape_, bounds, budget_);
    bounds.low = read_bound("exclusiveMinimum", true);
    bounds.high = read_bound("exclusiveMaximum", true);
    shape_ = merged(shape_, bounds, budget_);
    if (const json::Value* multiple = find("multipleOf")) {
      if (!multiple->is_number() || multiple->as_double() <= 0) refuse("multipleOf", "is not a number above 0");
      const auto number = multiple->as_double();
      if (std::trunc(number) != number || number > kMaxMultiple) {
        refuse("multipleOf", "is supported only for integers up to " + std::to_string(kMaxMultiple) + ": leave it out");
      }
      shape_.multiple_of = static_cast<std::uint32_t>(number);
    }
  }

  Count read_count(std::string_view least, std::string_view most) const {
    Count count;
    if (const auto number = read_size(least)) count.least = *number;
    if (const auto number = read_size(most)) count.most = *number;
    if (count.least > kMaxCount) refuse(least, "is larger than " + std::to_string(kMaxCount));
    if (count.most > kMaxCount) count.most = kUnbounded;  // far beyond what an answer can hold
    return count;
  }

  std::optional<std::uint32_t> read_size(std::string_view keyword) const {
    const json::Value* size = find(keyword);
    if (size == nullptr) return std::nullopt;
    const double number = size->is_number() ? size->as_double() : -1;
    if (number < 0 || std::trunc(number) != number) refuse(keyword, "is not an integer of at least 0");
    return static_cast<std::uint32_t>(std::min(number, double{kUnbounded - 1}));
  }

  void read_string() {
    shape_.length = read_count("minLength", "maxLength");
    if (const json::Value* pattern = find("pattern")) {
      if (!pattern->is_string()) refuse("pattern", "is not a string");
      keep_text(language("pattern", std::string_view(pattern->get_string()), RegexUse::kSearch));
    }
    const json::Value* name = find("format");
    if (name == nullptr) return;
    if (!name->is_string()) refuse("format", "is not a string");
    const Format* format = find_format(std::string_view(name->get_string()));
    if (format == nullptr) return;  // an unknown format is an annotation
    if (!format->pattern.empty()) keep_text(language("format", format->pattern, RegexUse::kWhole));
    if (format->name == "int32") {
      Shape bounds;
      bounds.low = Bound{*decimal_of(std::int64_t{INT32_MIN}), false};
      bounds.high = Bound{*decimal_of(std::int64_t{INT32_MAX}), false};
      shape_ = merged(shape_, bounds, budget_);
    }
  }

  std::shared_ptr<const Language> language(std::string_view keyword, std::string_view pattern, RegexUse use) const {
    Rules scratch;
    const Result<Expr> expr = regex(scratch, pattern, use);
    if (!expr) refuse(keyword, expr.error().message);
    return std::make_shared<const Language>(Language::of(scratch, *expr, budget_));
  }

  void keep_text(std::shared_ptr<const Language> text) {
    shape_.text = shape_.text ? std::make_shared<const Language>(shape_.text->both(*text, budget_)) : std::move(text);
  }

  // The schema of `keyword` (items, additionalProperties, ...), or else that of `unevaluated`, which must not be beside
  // keywords that apply other schemas in place.
  std::optional<SchemaId> others(std::string_view keyword, std::string_view unevaluated) const {
    if (find(keyword) != nullptr) return document_.below(id_, keyword);
    if (find(unevaluated) == nullptr) return std::nullopt;
    for (const std::string_view in_place :
         {"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"}) {
      if (find(in_place) != nullptr) {
        refuse(unevaluated, "is not supported with " + std::string(in_place) + ": merge the schemas into one");
      }
    }
    return document_.below(id_, unevaluated);
  }

  void read_array() {
    shape_.num_items = read_count("minItems", "maxItems");
    read_size("minContains");
    read_size("maxContains");
    if (const json::Value* unique = find("uniqueItems")) {
      if (!unique->is_bool()) refuse("uniqueItems", "is not true or false");
      shape_.unique_items = unique->get_bool();
    }
    Items items;
    bool listed = read_list("prefixItems", items);
    std::string_view rest = "items";
    if (const json::Value* old = find("items"); old != nullptr && old->is_array()) {
      if (!document_.items_may_be_a_list()) refuse("items", "must not be a list since 2020-12: use prefixItems");
      listed = read_list("items", items);
      rest = "additionalItems";
    } else if (find("prefixItems") != nullptr && document_.items_may_be_a_list()) {
      refuse("prefixItems", "exists only since 2020-12: use items, or another $schema");
    } else if (find("additionalItems") != nullptr && !document_.items_may_be_a_list()) {
      refuse("additionalItems", "does not exist since 2020-12: use items");
    }
    const auto other = others(rest, "unevaluatedItems");
    if (other) items.others = *other;
    items.names_others = other.has_value();
    if (listed || other) shape_.items.push_back(std::make_shared<const Items>(std::move(items)));
  }

  bool read_list(std::string_view keyword, Items& items) const {
    const json::Value* list = find(keyword);
    if (list == nullptr) return false;
    if (!list->is_array()) refuse(keyword, "is not a list of schemas");
    if (list->get_array().size() > limits_.max_properties) {
      refuse(keyword, "has more than " + std::to_string(limits_.max_properties) + " schemas");
    }
    for (std::size_t i = 0; i < list->get_array().size(); ++i) items.first.push_back(document_.below(id_, keyword, i));
    return true;
  }

  const json::Object* object_of(std::string_view keyword) const {
    const json::Value* named = find(keyword);
    if (named == nullptr) return nullptr;
    if (!named->is_object()) refuse(keyword, "is not an object");
    if (named->get_object().size() > limits_.max_properties) {
      refuse(keyword, "names more than " + std::to_string(limits_.max_properties) + " properties");
    }
    return &named->get_object();
  }

  void read_object() {
    shape_.num_members = read_count("minProperties", "maxProperties");
    if (const json::Value* required = find("required")) {
      if (!required->is_array()) refuse("required", "is not a list of names");
      if (required->get_array().size() > limits_.max_properties) {
        refuse("required", "names more than " + std::to_string(limits_.max_properties) + " properties");
      }
      std::set<std::string_view> known;
      for (const json::Value& name : required->get_array()) {
        if (!name.is_string()) refuse("required", "is not a list of names");
        if (known.insert(name.get_string()).second) shape_.required.emplace_back(name.get_string());
      }
    }
    if (find("propertyNames") != nullptr) shape_.names.push_back(document_.below(id_, "propertyNames"));
    Members members;
    if (const auto* named = object_of("properties")) {
      for (const auto& item : *named) {
        members.named.emplace_back(item.name, document_.below(id_, "properties", item.name));
      }
    }
    if (const auto* patterns = object_of("patternProperties")) {
      if (patterns->size() > kMaxPatterns) {
        refuse("patternProperties", "has more than " + std::to_string(kMaxPatterns) + " patterns");
      }
      for (const auto& item : *patterns) {
        members.patterns.push_back({language("patternProperties", item.name, RegexUse::kSearch),
                                    document_.below(id_, "patternProperties", item.name)});
      }
    }
    const auto other = others("additionalProperties", "unevaluatedProperties");
    if (other) members.others = *other;
    members.names_others = other.has_value();
    if (find("properties") != nullptr || find("patternProperties") != nullptr || other) {
      shape_.members.push_back(share(std::move(members)));
    }
  }

  Document& document_;
  SchemaId id_;
  const json::Object& object_;
  const ShapeLimits& limits_;
  StateBudget& budget_;
  Shape shape_;
};

}  // namespace

Shape read_shape(Document& document, SchemaId id, const ShapeLimits& limits, StateBudget& budget) {
  return Reader(document, id, limits, budget).read();
}

}  // namespace quire::grammar
