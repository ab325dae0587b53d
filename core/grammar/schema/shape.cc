#include "core/grammar/schema/shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quire::grammar {
namespace {

using boost::json::value;

Count both(const Count& a, const Count& b) { return {std::max(a.least, b.least), std::min(a.most, b.most)}; }

// The tighter of two bounds; sign 1 for lower ones.
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

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

bool Shape::requires_member(std::string_view name) const {
  return std::find(required.begin(), required.end(), name) != required.end();
}

std::uint8_t type_of(const value& v) {
  switch (v.kind()) {
    case boost::json::kind::null:
      return kNull;
    case boost::json::kind::bool_:
      return kBoolean;
    case boost::json::kind::string:
      return kString;
    case boost::json::kind::array:
      return kArray;
    case boost::json::kind::object:
      return kObject;
    case boost::json::kind::double_:
      return std::trunc(v.get_double()) == v.get_double() ? kInteger : kFraction;
    default:
      return kInteger;
  }
}

bool equal(const value& a, const value& b) {
  if (a.is_number() && b.is_number()) {
    const auto x = decimal_of(a);
    const auto y = decimal_of(b);
    return x && y ? compare(*x, *y) == 0 : a == b;
  }
  if (a.is_array() && b.is_array()) {
    const auto& x = a.get_array();
    const auto& y = b.get_array();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  }
  if (a.is_object() && b.is_object()) {
    const auto& x = a.get_object();
    const auto& y = b.get_object();
    return x.size() == y.size() && std::all_of(x.begin(), x.end(), [&](const auto& item) {
             const value* other = y.if_contains(item.key());
             return other != nullptr && equal(item.value(), *other);
           });
  }
  return a == b;
}

Shape merged(const Shape& a, const Shape& b, StateBudget& budget) {
  Shape out = a;
  out.types &= b.types;
  if (a.values && b.values) {
    std::erase_if(*out.values, [&](const value* one) {
      return std::none_of(b.values->begin(), b.values->end(), [&](const value* other) { return equal(*one, *other); });
    });
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
  for (const std::string& name : b.required) {
    if (!out.requires_member(name)) out.required.push_back(name);
  }
  append(out.names, b.names);
  return out;
}

bool settle(Shape& shape) {
  const auto drop = [&](bool impossible, std::uint8_t types) {
    if (impossible) shape.types &= static_cast<std::uint8_t>(~types);
  };
  drop(is_empty({shape.low, shape.high}), kNumber);
  drop(shape.length.empty() || (shape.text && shape.text->empty()), kString);
  drop(shape.num_items.empty(), kArray);
  bool no_object = shape.num_members.empty() || shape.required.size() > shape.num_members.most;
  for (const std::string& name : shape.required) {
    const auto schemas = member_schemas(shape, name);
    no_object |= std::find(schemas.begin(), schemas.end(), kNothing) != schemas.end();
  }
  drop(no_object, kObject);
  if (shape.values) {
    std::erase_if(*shape.values, [&](const value* one) { return admits(shape, *one) == false; });
    return !shape.values->empty();
  }
  return shape.types != 0;
}

std::optional<bool> admits(const Shape& shape, const value& v) {
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
  for (const Members& one : shape.members) {
    bool spoken_of = false;
    const auto add = [&](SchemaId schema) {
      spoken_of = true;
      out.push_back(schema);
    };
    for (const auto& [key, schema] : one.named) {
      if (key == name) add(schema);
    }
    for (const auto& pattern : one.patterns) {
      if (pattern.names->contains(name)) add(pattern.schema);
    }
    if (!spoken_of) out.push_back(one.others);
  }
  return out;
}

std::vector<SchemaId> item_schemas(const Shape& shape, std::size_t index) {
  std::vector<SchemaId> out;
  for (const Items& one : shape.items) out.push_back(index < one.first.size() ? one.first[index] : one.others);
  return out;
}

}  // namespace quire::grammar
