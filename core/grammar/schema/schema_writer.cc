#include "core/grammar/schema/schema_writer.h"

#include <algorithm>
#include <set>

namespace quire::grammar {
namespace {

// Adds `name` at the end, if it is not there yet.
void add_names(std::vector<std::string>& names, std::set<std::string, std::less<>>& known, const std::string& name) {
  if (known.insert(name).second) names.push_back(name);
}

// The properties that the shape names: in the order of its schemas, then those that are only required.
std::vector<std::string> named_members(const Shape& shape) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known;
  for (const auto& one : shape.members) {
    for (const auto& member : one->named) add_names(names, known, member.first);
  }
  for (const std::string& name : shape.required) add_names(names, known, name);
  return names;
}

bool holds_nothing(const std::vector<SchemaId>& schemas) {
  return std::ranges::find(schemas, kNothing) != schemas.end();
}

// True if members that match no name and no pattern are written: a schema has a keyword for them, such as
// additionalProperties, or there is no pattern and either no named member or fewer than minProperties needs.
bool is_open(const Shape& shape) {
  if (std::ranges::any_of(shape.members, [](const auto& one) { return one->names_others; })) return true;
  std::size_t num_named = shape.required.size();
  std::size_t num_patterns = 0;
  for (const auto& one : shape.members) {
    num_named += static_cast<std::size_t>(
        std::ranges::count_if(one->named, [](const auto& member) { return member.second != kNothing; }));
    num_patterns += one->patterns.size();
  }
  return num_patterns == 0 && (num_named == 0 || num_named < shape.num_members.least);
}

}  // namespace

void SchemaWriter::write() {
  const SchemaId root = document_.root();
  if (root == kNothing) throw Refusal{"", "is false, so no value is valid"};
  value({root});
  write_waiting();
}

void SchemaWriter::write_waiting() {
  while (!todo_.empty()) {
    const auto [schemas, rule] = todo_.back();
    todo_.pop_back();
    at_ = schemas.front();
    std::vector<Expr> ways;
    try {
      for (const Shape& one : alternatives_.of(schemas)) {
        ways.push_back(shape(one));
        charge_rules();
      }
    } catch (const LanguageTooLarge& error) {
      document_.refuse_too_large(at_, error.limit);
    }
    json_.rules().define(rule, json_.rules().choice(ways));
  }
}

// Charges the budget for the rules that were written since the last call.
void SchemaWriter::charge_rules() {
  const std::size_t bytes = json_.rules().num_bytes();
  budget_.step((bytes - charged_bytes_) / 64);
  charged_bytes_ = bytes;
}

void SchemaWriter::refuse(std::string_view keyword, std::string message) const {
  document_.refuse(at_, keyword, std::move(message));
}

Expr SchemaWriter::value(std::vector<SchemaId> schemas) {
  budget_.step(1 + 2 * schemas.size());
  if (holds_nothing(schemas)) return json_.nothing();
  std::erase(schemas, kAnything);
  std::vector<SchemaId> key = schemas;
  std::ranges::sort(key);
  const auto repeated = std::ranges::unique(key);
  key.erase(repeated.begin(), repeated.end());
  if (key.empty() && !rules_.empty()) return json_.any_value();
  if (const auto found = rules_.find(key); found != rules_.end()) return json_.rules().use(found->second);
  const RuleId rule = json_.rules().declare(key.empty() ? "#" : "#" + document_.pointer(key.front()));
  if (key.empty()) {  // the document is `true`
    rules_.emplace(key, rule);
    json_.rules().define(rule, json_.any_value());
    return json_.rules().use(rule);
  }
  rules_.emplace(std::move(key), rule);
  todo_.emplace_back(std::move(schemas), rule);
  return json_.rules().use(rule);
}

Expr SchemaWriter::shape(const Shape& shape) {
  std::vector<Expr> ways;
  if (shape.values) {
    for (const Listed& one : *shape.values) {
      if (!admits(shape, *one.value)) {
        refuse("", "constrains the contents of an array or an object in its enum or const: leave out one of the two");
      }
      budget_.step_over(*one.text);
      ways.push_back(json_.literal(*one.value));
    }
    return json_.rules().choice(ways);
  }
  if ((shape.types & kObject) != 0) ways.push_back(object(shape));
  if ((shape.types & kArray) != 0) ways.push_back(array(shape));
  if ((shape.types & kString) != 0) ways.push_back(string(shape));
  if ((shape.types & kNumber) != 0) ways.push_back(number(shape));
  if ((shape.types & kBoolean) != 0) ways.push_back(json_.boolean());
  if ((shape.types & kNull) != 0) ways.push_back(json_.null());
  return ways.size() == 1 ? ways.front() : json_.rules().choice(ways);
}

Expr SchemaWriter::number(const Shape& shape) {
  const bool integer = (shape.types & kFraction) == 0 || shape.multiple_of != 0;
  if (!shape.low && !shape.high && shape.multiple_of == 0) return integer ? json_.any_integer() : json_.any_number();
  const NumberRange range{shape.low, shape.high, integer};
  if (shape.multiple_of <= 1) {
    const auto text = number_range(json_.rules(), range);
    if (!text) refuse("", "has a bound of more than 15 significant digits: round it, or use type integer");
    return *text;
  }
  Rules scratch;
  const Language in_range = Language::of(scratch, *number_range(scratch, range), budget_);
  return in_range.both(Language::multiples(shape.multiple_of, budget_), budget_).write(json_.rules());
}

Expr SchemaWriter::string(const Shape& shape) {
  if (!shape.text) {
    if (shape.length.least == 0 && !Shape::has_most(shape.length)) return json_.any_string();
    return json_.string(shape.length.least, shape.length.most);
  }
  return Alternatives::strings(shape, budget_).write_json_string(json_.rules());
}

Expr SchemaWriter::array(const Shape& shape) {
  if (!shape.constrains_items()) return json_.any_array();
  if (shape.unique_items && shape.num_items.most > 1) return unique_array(shape);
  std::size_t num_first = 0;
  bool closed = false;
  for (const auto& one : shape.items) {
    num_first = std::max(num_first, one->first.size());
    closed |= !one->first.empty();
  }
  closed = closed && std::ranges::none_of(shape.items, [](const auto& one) { return one->names_others; });
  Count count = shape.num_items;
  if (closed) count.most = std::min(count.most, std::max(count.least, static_cast<std::uint32_t>(num_first)));

  const auto first = static_cast<std::uint32_t>(std::min<std::size_t>(num_first, count.most));
  const std::uint32_t more = count.most == kUnbounded ? kUnbounded : count.most - first;
  const Expr other = more > 0 ? value(item_schemas(shape, num_first)) : json_.nothing();
  const std::uint32_t needed = count.least > first ? count.least - first : 0;
  // Built from the back: `rest` follows the first i items.
  Expr rest =
      first > 0 ? json_.repeat(json_.sequence({json_.comma(), other}), needed, more)
      : more == 0
          ? json_.nothing()
          : json_.sequence({other, json_.repeat(json_.sequence({json_.comma(), other}), needed > 0 ? needed - 1 : 0,
                                                more == kUnbounded ? more : more - 1)});
  for (std::uint32_t i = first; i > 0; --i) {
    const Expr item = value(item_schemas(shape, i - 1));
    rest = i == 1 ? json_.sequence({item, rest}) : json_.sequence({json_.comma(), item, rest});
    if (i > 1 && i > count.least) rest = json_.optional(rest);
  }
  rest = json_.sequence({json_.gap(), rest, json_.gap()});
  if (count.least == 0) rest = json_.optional(rest);
  return json_.sequence({json_.rules().bytes("["), rest, json_.rules().bytes("]")});
}

Expr SchemaWriter::unique_array(const Shape& shape) {
  std::vector<const json::Value*> values;
  std::set<std::string_view> known;
  for (const auto& one : shape.items) {
    if (!one->first.empty()) refuse("uniqueItems", "is not supported with prefixItems: leave it out");
  }
  const std::vector<SchemaId> schemas = item_schemas(shape, 0);
  const std::vector<Shape> items = alternatives_.of(schemas);
  for (const Shape& item : items) {
    if (!item.values) {
      refuse("uniqueItems",
             "is supported only for items with an enum: leave it out, or list the values of items in an enum");
    }
    budget_.step(2 * item.values->size());
    for (const Listed& one : *item.values) {
      if (known.insert(*one.text).second) values.push_back(one.value);
    }
  }
  if (schemas.empty()) refuse("uniqueItems", "is supported only for items with an enum: leave it out, or add items");
  std::vector<SequenceText::Part> parts;
  for (const auto* one : values) parts.push_back({json_.literal(*one), false});
  if (shape.num_items.least > values.size()) return json_.nothing();
  const auto text = SequenceText(json_, std::move(parts), std::nullopt, shape.num_items, kArrayBrackets).write();
  if (!text) refuse("uniqueItems", "has too many values to count: leave out minItems and maxItems");
  return *text;
}

Expr SchemaWriter::object(const Shape& shape) {
  if (!shape.constrains_members() && spelled_ == nullptr) return json_.any_object();
  for (const auto& one : shape.members) budget_.step(one->named.size());
  const std::vector<std::string> named = named_members(shape);
  const std::set<std::string_view> needed(shape.required.begin(), shape.required.end());
  std::optional<Language> allowed;
  if (!shape.names.empty()) allowed = alternatives_.strings(shape.names);
  std::vector<SequenceText::Part> parts;
  for (const std::string& name : named) {
    budget_.step(2 + 2 * shape.members.size());
    std::vector<SchemaId> schemas = member_schemas(shape, name);
    const bool possible = !holds_nothing(schemas) && (!allowed || allowed->contains(name));
    const bool required = needed.contains(name);
    if (!possible && !required) continue;
    parts.push_back({possible ? member(key_of(name), name, std::move(schemas)) : json_.nothing(), required});
  }
  const std::size_t num_parts = parts.size();
  const auto others = other_members(shape, named);
  if (shape.num_members.least > num_parts + (others ? 1 : 0)) {
    if (others) {
      refuse("minProperties", "exceeds the number of named properties by more than one: name the properties");
    }
    return json_.nothing();
  }
  const SequenceSpelling around =
      spelled_ == nullptr ? kObjectBraces : SequenceSpelling{"", "", spelled_->spelling.between, false};
  const auto text = SequenceText(json_, std::move(parts), others, shape.num_members, around).write();
  if (!text) refuse("maxProperties", "has too many properties to count: leave out minProperties and maxProperties");
  return *text;
}

// The rule of members that no schema names: an alternative for each set of patterns that a key can match. None: there
// are no such members.
std::optional<Expr> SchemaWriter::other_members(const Shape& shape, const std::vector<std::string>& named) {
  std::vector<std::pair<const Members*, const Members::Pattern*>> patterns;
  for (const auto& one : shape.members) {
    for (const Members::Pattern& pattern : one->patterns) patterns.emplace_back(one.get(), &pattern);
  }
  if (patterns.size() > 4)
    refuse("patternProperties", "has more than 4 patterns, together with those of schemas merged with it");
  std::optional<Language> free;  // keys; none: every string
  if (!named.empty() || !shape.names.empty() || !patterns.empty()) {
    if (!is_open(shape) && patterns.empty()) return std::nullopt;
    free = shape.names.empty() ? Language::of_utf8(budget_) : alternatives_.strings(shape.names);
    Rules scratch;
    std::vector<Expr> texts;
    for (const std::string& name : named) texts.push_back(scratch.bytes(name));
    free = free->without(Language::of(scratch, scratch.choice(texts), budget_), budget_);
  }
  std::vector<Expr> ways;
  for (std::uint32_t matched = 0; matched < 1u << patterns.size(); ++matched) {
    if (matched == 0 && !is_open(shape)) continue;
    std::vector<SchemaId> schemas;
    std::optional<Language> keys = free;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const bool matches = (matched >> i & 1) != 0;
      const Language& names = *patterns[i].second->names;
      keys = matches ? keys->both(names, budget_) : keys->without(names, budget_);
      if (matches) schemas.push_back(patterns[i].second->schema);
    }
    for (const auto& one : shape.members) {
      bool spoken_of = false;
      for (std::size_t i = 0; i < patterns.size(); ++i)
        spoken_of |= patterns[i].first == one.get() && (matched >> i & 1) != 0;
      if (!spoken_of) schemas.push_back(one->others);
    }
    if (holds_nothing(schemas) || (keys && keys->empty())) continue;
    ways.push_back(member(any_key(keys ? &*keys : nullptr), "", std::move(schemas)));
  }
  if (ways.empty()) return std::nullopt;
  const RuleId rule = json_.rules().declare("other member");
  json_.rules().define(rule, json_.rules().choice(ways));
  return json_.rules().use(rule);
}

}  // namespace quire::grammar
