#include "core/grammar/schema/shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/json_string.h"

namespace quire::grammar {
namespace {

Count both(const Count& a, const Count& b) { return {std::max(a.least, b.least), std::min(a.most, b.most)}; }

// The tighter of two bounds; sign: 1 for lower bounds, -1 for upper ones.
std::optional<Bound> tighter(const std::optional<Bound>& a, const std::optional<Bound>& b, int sign) {
  if (!a || !b) return a ? a : b;
  const int order = sign * compare(a->value, b->value);
  if (order == 0) return Bound{a->value, a->open || b->open};
  return order > 0 ? a : b;
}

std::uint32_t num_code_points(std::string_view text) {
  return static_cast<std::uint32_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_multiple(const Decimal& number, std::uint32_t of) {
  if (!number.is_integer()) return false;
  std::uint64_t rest = 0;
  for (const char c : number.whole) rest = (rest * 10 + static_cast<std::uint64_t>(c - '0')) % of;
  return rest == 0;
}

// Appends a text that is equal for equal values: numbers as decimals if decimal_of() has one, members sorted by name.
void append_canonical(std::string& out, const json::Value& v) {
  if (v.is_number()) {
    if (const auto number = decimal_of(v)) {
      out += (number->negative ? "-" : "") + number->whole + "." + number->part;
    } else {
      out += json::serialize(v);
    }
  } else if (const auto* list = v.if_array()) {
    out += '[';
    for (const json::Value& one : *list) {
      append_canonical(out, one);
      out += ',';
    }
    out += ']';
  } else if (const auto* object = v.if_object()) {
    std::map<std::string_view, const json::Value*> members;
    for (const auto& item : *object) members.emplace(item.name, &item.value);
    out += '{';
    for (const auto& [name, member] : members) {
      append_json_string(out, name);
      out += ':';
      append_canonical(out, *member);
      out += ',';
    }
    out += '}';
  } else {
    out += json::serialize(v);
  }
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// The number of steps charged for a copy of the shape.
std::size_t size_of(const Shape& shape) {
  return shape.members.size() + shape.items.size() + 2 * shape.required.size() + shape.names.size() +
         (shape.values ? 2 * shape.values->size() : 0);
}

}  // namespace

bool Shape::requires_member(std::string_view name) const {
  return std::find(required.begin(), required.end(), name) != required.end();
}

std::uint8_t type_of(const json::Value& v) {
  switch (v.kind()) {
    case json::Kind::kNull:
      return kNull;
    case json::Kind::kBool:
      return kBoolean;
    case json::Kind::kString:
      return kString;
    case json::Kind::kArray:
      return kArray;
    case json::Kind::kObject:
      return kObject;
    case json::Kind::kDouble:
      return std::trunc(v.get_double()) == v.get_double() ? kInteger : kFraction;
    default:
      return kInteger;
  }
}

Listed listed(const json::Value& v, StateBudget& budget) {
  std::string text;
  append_canonical(text, v);
  budget.step_over(text);
  return {&v, std::make_shared<const std::string>(std::move(text))};
}

std::shared_ptr<const Members> share(Members members) {
  auto shared = std::make_shared<Members>(std::move(members));
  for (const auto& [name, schema] : shared->named) shared->schemas_by_name[name].push_back(schema);
  return shared;
}

Shape merged(const Shape& a, const Shape& b, StateBudget& budget) {
  budget.step(4 + size_of(a) + size_of(b));
  Shape out = a;
  out.types &= b.types;
  if (a.values && b.values) {
    std::set<std::string_view> theirs;
    for (const Listed& other : *b.values) theirs.insert(*other.text);
    std::erase_if(*out.values, [&](const Listed& one) { return !theirs.contains(*one.text); });
  } else if (b.values) {
    out.values = b.values;
  }
  out.low = tighter(a.low, b.low, 1);
  out.high = tighter(a.high, b.high, -1);
  if (a.multiple_of != 0 && b.multiple_of != 0) {
    const std::uint64_t both_of = std::lcm(std::uint64_t{a.multiple_of}, std::uint64_t{b.multiple_of});
    if (both_of > kUnbounded) budget.fail();
    out.multiple_of = static_cast<std::uint32_t>(both_of);
  } else {
    out.multiple_of = std::max(a.multiple_of, b.multiple_of);
  }
  out.length = both(a.length, b.length);
  if (a.text && b.text && a.text != b.text) {
    out.text = std::make_shared<const Language>(a.text->both(*b.text, budget));
  } else if (b.text) {
    out.text = b.text;
  }
  out.num_items = both(a.num_items, b.num_items);
  append(out.items, b.items);
  out.unique_items |= b.unique_items;
  out.num_members = both(a.num_members, b.num_members);
  append(out.members, b.members);
  const std::set<std::string_view> ours(a.required.begin(), a.required.end());
  for (const std::string& name : b.required) {
    if (!ours.contains(name)) out.required.push_back(name);
  }
  append(out.names, b.names);
  return out;
}

bool settle(Shape& shape, StateBudget& budget) {
  const auto drop = [&](bool impossible, std::uint8_t types) {
    if (impossible) shape.types &= static_cast<std::uint8_t>(~types);
  };
  drop(is_empty({shape.low, shape.high}), kNumber);
  drop(shape.length.empty() || (shape.text && shape.text->empty()), kString);
  drop(shape.num_items.empty(), kArray);
  bool no_object = shape.num_members.empty() || shape.required.size() > shape.num_members.most;
  for (const std::string& name : shape.required) {
    budget.step(1 + shape.members.size());
    const auto schemas = member_schemas(shape, name);
    no_object |= std::find(schemas.begin(), schemas.end(), kNothing) != schemas.end();
  }
  drop(no_object, kObject);
  if (shape.values) {
    budget.step(shape.values->size());
    std::erase_if(*shape.values, [&](const Listed& one) { return admits(shape, *one.value) == false; });
    return !shape.values->empty();
  }
  return shape.types != 0;
}

std::optional<bool> admits(const Shape& shape, const json::Value& v) {
  const std::uint8_t type = type_of(v);
  if ((shape.types & type) == 0) return false;
  switch (type) {
    case kInteger:
    case kFraction: {
      const auto number = decimal_of(v);
      if (!number) {
        if (!shape.low && !shape.high && shape.multiple_of == 0) return true;
        return std::nullopt;
      }
      if (shape.multiple_of != 0 && !is_multiple(*number, shape.multiple_of)) return false;
      return holds({shape.low, shape.high}, *number);
    }
    case kString: {
      const std::string_view text = v.get_string();
      const std::uint32_t length = num_code_points(text);
      if (length < shape.length.least || length > shape.length.most) return false;
      return !shape.text || shape.text->contains(text);
    }
    case kArray:
      if (shape.constrains_items()) return std::nullopt;
      return true;
    case kObject:
      if (shape.constrains_members()) return std::nullopt;
      return true;
    default:
      return true;
  }
}

std::vector<SchemaId> member_schemas(const Shape& shape, std::string_view name) {
  std::vector<SchemaId> out;
  for (const auto& one : shape.members) {
    const std::size_t before = out.size();
    if (const auto found = one->schemas_by_name.find(name); found != one->schemas_by_name.end()) {
      append(out, found->second);
    }
    for (const auto& pattern : one->patterns) {
      if (pattern.names->contains(name)) out.push_back(pattern.schema);
    }
    if (out.size() == before) out.push_back(one->others);
  }
  return out;
}

std::vector<SchemaId> item_schemas(const Shape& shape, std::size_t index) {
  std::vector<SchemaId> out;
  for (const auto& one : shape.items) out.push_back(index < one->first.size() ? one->first[index] : one->others);
  return out;
}

}  // namespace quire::grammar
