#include "core/grammar/schema/alternatives.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/grammar/schema/exclusion.h"

namespace quire::grammar {
namespace {

constexpr std::uint32_t kMaxInPlace = 64;  // nested schemas applied in place ($ref, allOf, ...)

Language no_strings(StateBudget& budget) {
  Rules rules;
  return Language::of(rules, rules.choice({}), budget);
}

}  // namespace

std::vector<Shape> Alternatives::of(std::span<const SchemaId> ids) {
  std::vector<Shape> shapes{Shape{}};
  for (const SchemaId id : ids) {
    if (id == kNothing) return {};
    if (id != kAnything) shapes = all_of_both(shapes, of_one(id), id);
  }
  return shapes;
}

std::optional<std::vector<Shape>> Alternatives::of_if_known(std::span<const SchemaId> ids) {
  for (const SchemaId id : ids) {
    if (std::find(in_progress_.begin(), in_progress_.end(), id) != in_progress_.end()) return std::nullopt;
  }
  return of(ids);
}

const std::vector<Shape>& Alternatives::of_one(SchemaId id) {
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  if (std::find(in_progress_.begin(), in_progress_.end(), id) != in_progress_.end()) {
    document_.refuse(id, "", "applies itself to the same value: a $ref must be inside an object or an array");
  }
  if (in_progress_.size() >= kMaxInPlace) {
    document_.refuse(
        id, "", "is nested too deeply in $ref, allOf, anyOf and oneOf: the limit is " + std::to_string(kMaxInPlace));
  }
  in_progress_.push_back(id);
  try {
    std::vector<Shape> shapes = work_out(id);
    in_progress_.pop_back();
    return known_.emplace(id, std::move(shapes)).first->second;
  } catch (const LanguageTooLarge& error) {
    document_.refuse_too_large(id, error.limit);
  }
}

std::vector<Shape> Alternatives::work_out(SchemaId id) {
  const json::Object& object = *document_.object(id);
  std::vector<Shape> shapes{read_shape(document_, id, limits_.shape, budget_)};
  if (!settle(shapes.front(), budget_)) shapes.clear();
  if (const json::Value* reference = object.if_contains("$ref")) {
    if (!reference->is_string()) document_.refuse(id, "$ref", "is not a string");
    const SchemaId target[] = {document_.target(id, std::string_view(reference->get_string()))};
    shapes = all_of_both(shapes, of(target), id);
  }
  if (object.contains("allOf")) {
    for (std::size_t i = 0; i < list_size(id, "allOf"); ++i) {
      const SchemaId one[] = {document_.below(id, "allOf", i)};
      shapes = all_of_both(shapes, of(one), id);
    }
  }
  if (object.contains("anyOf")) {
    std::vector<Shape> any;
    for (std::size_t i = 0; i < list_size(id, "anyOf"); ++i) {
      const SchemaId one[] = {document_.below(id, "anyOf", i)};
      std::ranges::move(of(one), std::back_inserter(any));
    }
    shapes = all_of_both(shapes, any, id);
  }
  for (const std::string_view keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    if (object.contains(keyword)) apply_dependent(id, keyword, shapes);
  }
  if (object.contains("not")) apply_not(id, shapes);
  if (object.contains("if")) apply_if(id, shapes);
  if (object.contains("oneOf")) apply_one_of(id, shapes);
  return shapes;
}

std::vector<Shape> Alternatives::all_of_both(const std::vector<Shape>& a, const std::vector<Shape>& b, SchemaId at) {
  std::vector<Shape> out;
  for (const Shape& one : a) {
    for (const Shape& other : b) {
      if (++num_shapes_ > limits_.max_shapes) {
        document_.refuse(at, "",
                         "makes more than " + std::to_string(limits_.max_shapes) +
                             " combinations of alternatives: nest fewer anyOf, oneOf and allOf");
      }
      Shape both = merged(one, other, budget_);
      if (settle(both, budget_)) out.push_back(std::move(both));
    }
  }
  return out;
}

std::size_t Alternatives::list_size(SchemaId id, std::string_view keyword) const {
  const json::Value& list = document_.object(id)->at(keyword);
  if (!list.is_array() || list.get_array().empty()) {
    document_.refuse(id, keyword, "is not a list of schemas, at least one");
  }
  return list.get_array().size();
}

void Alternatives::apply_one_of(SchemaId id, std::vector<Shape>& shapes) {
  std::vector<std::vector<Shape>> branches;
  for (std::size_t i = 0; i < list_size(id, "oneOf"); ++i) {
    const SchemaId one[] = {document_.below(id, "oneOf", i)};
    branches.push_back(all_of_both(shapes, of(one), id));
  }
  Exclusion exclusion(*this, budget_);
  const auto apart = [&](std::vector<Shape>& these, const std::vector<Shape>& those) {
    return std::ranges::all_of(these, [&](Shape& one) {
      return std::ranges::all_of(those, [&](const Shape& other) { return exclusion.keep_apart(one, other); });
    });
  };
  const auto as_written = branches;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t j = 0; j < branches.size(); ++j) {
      if (i == j || apart(branches[i], as_written[j])) continue;
      document_.refuse(
          id, "oneOf",
          "has branches " + std::to_string(std::min(i, j)) + " and " + std::to_string(std::max(i, j)) +
              " that may both match one value: use anyOf, or give each branch a required property with its own const");
    }
  }
  shapes.clear();
  for (auto& branch : branches) std::ranges::move(branch, std::back_inserter(shapes));
}

void Alternatives::apply_not(SchemaId id, std::vector<Shape>& shapes) {
  const SchemaId inner = document_.below(id, "not");
  if (inner == kNothing) return;
  const json::Object* object = document_.object(inner);
  if (object == nullptr || object->empty()) {
    shapes.clear();
    return;
  }
  if (object->size() != 1 || !object->contains("type")) {
    document_.refuse(id, "not", "is supported with only a type: describe the allowed values instead");
  }
  const SchemaId schemas[] = {inner};
  std::uint8_t types = 0;
  for (const Shape& shape : of(schemas)) types |= shape.types;
  if ((types & kNumber) == kInteger) document_.refuse(id, "not", "cannot exclude integers from numbers");
  Shape rest;
  rest.types = static_cast<std::uint8_t>(kAnyType & ~types);
  shapes = all_of_both(shapes, {rest}, id);
}

void Alternatives::apply_if(SchemaId id, std::vector<Shape>& shapes) {
  const json::Object& object = *document_.object(id);
  if (!object.contains("then") && !object.contains("else")) return;
  const SchemaId condition = document_.below(id, "if");
  if (condition != kAnything && condition != kNothing) {
    document_.refuse(id, "if", "is not supported: write the cases as anyOf, each with a const that distinguishes it");
  }
  const std::string_view taken = condition == kAnything ? "then" : "else";
  if (!object.contains(taken)) return;
  const SchemaId schemas[] = {document_.below(id, taken)};
  shapes = all_of_both(shapes, of(schemas), id);
}

// If a property is present, others must be, too, or a schema must hold. Two alternatives: the property is absent, or it
// is present and the condition holds.
void Alternatives::apply_dependent(SchemaId id, std::string_view keyword, std::vector<Shape>& shapes) {
  const json::Value& all = document_.object(id)->at(keyword);
  if (!all.is_object()) document_.refuse(id, keyword, "is not an object");
  for (const auto& item : all.get_object()) {
    Shape absent;
    absent.members.push_back(share({{{std::string(item.name), kNothing}}, {}, kAnything, false}));
    Shape present;
    present.required.emplace_back(item.name);
    std::vector<Shape> ways{present};
    if (item.value.is_array() && keyword != "dependentSchemas") {
      std::set<std::string_view> known{std::string_view(item.name)};
      for (const json::Value& name : item.value.get_array()) {
        if (!name.is_string()) document_.refuse(id, keyword, "must have lists of names as values");
        budget_.step();
        if (known.insert(name.get_string()).second) ways.front().required.emplace_back(name.get_string());
      }
    } else if (keyword == "dependentRequired") {
      document_.refuse(id, keyword, "must have lists of names as values");
    } else {
      const SchemaId schemas[] = {document_.below(id, keyword, item.name)};
      ways = all_of_both(ways, of(schemas), id);
    }
    ways.push_back(absent);
    shapes = all_of_both(shapes, ways, id);
  }
}

Language Alternatives::strings(std::span<const SchemaId> schemas) {
  Language out = no_strings(budget_);
  for (const Shape& shape : of(schemas)) out = out.either(strings(shape, budget_), budget_);
  return out;
}

Language Alternatives::strings(const Shape& shape, StateBudget& budget) {
  if ((shape.types & kString) == 0) return no_strings(budget);
  if (shape.values) {
    Rules rules;
    std::vector<Expr> texts;
    for (const Listed& one : *shape.values) {
      if (one.value->is_string()) texts.push_back(rules.bytes(std::string_view(one.value->get_string())));
    }
    return Language::of(rules, rules.choice(texts), budget);
  }
  return (shape.text ? *shape.text : Language::of_utf8(budget))
      .with_length(shape.length.least, shape.length.most, budget);
}

}  // namespace quire::grammar
