// The part of SchemaWriter for an object whose members are not spelled in JSON.
#include <algorithm>
#include <cctype>
#include <utility>

#include "core/grammar/schema/schema_writer.h"

namespace quire::grammar {
namespace {

ByteSet bytes_of(std::string_view text) {
  ByteSet set;
  for (const char c : text) set.set(static_cast<unsigned char>(c));
  return set;
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view kDigits = "0123456789";

// Texts that a reader takes for numbers, words of JSON or Python, lists and objects.
Language looks_like_json(StateBudget& budget) {
  Rules own;
  const auto in_order = [&](std::initializer_list<Expr> parts) { return own.sequence({parts.begin(), parts.size()}); };
  const Expr blank = own.repeat(own.byte_set(bytes_of(" \t\n\r")), 0, kUnbounded);
  const Expr digits = own.repeat(own.byte_set(bytes_of(kDigits)), 1, kUnbounded);
  const Expr fraction = own.repeat(in_order({own.bytes("."), digits}), 0, 1);
  const Expr sign = own.repeat(own.byte_set(bytes_of("+-")), 0, 1);
  const Expr exponent = own.repeat(in_order({own.byte_set(bytes_of("eE")), sign, digits}), 0, 1);
  std::vector<Expr> values = {in_order({own.repeat(own.bytes("-"), 0, 1), digits, fraction, exponent})};
  for (const char* word : {"true", "false", "null", "True", "False", "None"}) values.push_back(own.bytes(word));
  const Expr any = own.repeat(own.byte_set(~ByteSet()), 0, kUnbounded);
  const Expr ways[] = {in_order({blank, own.choice(values), blank}),
                       in_order({blank, own.byte_set(bytes_of("[{(")), any})};
  return Language::of(own, own.choice(ways), budget);
}

Language with_mark(std::string_view mark, StateBudget& budget) {
  Rules own;
  const Expr any = own.repeat(own.byte_set(~ByteSet()), 0, kUnbounded);
  const Expr parts[] = {any, own.bytes(mark), any};
  return Language::of(own, own.sequence(parts), budget);
}

}  // namespace

void SchemaWriter::write_members(const SpelledMembers& members) {
  const SchemaId root = document_.root();
  if (root == kNothing) throw Refusal{"", "is false, so no value is valid"};
  const RuleId rule = json_.rules().declare("#");
  at_ = root;
  std::vector<Expr> ways;
  try {
    const std::vector<SchemaId> schemas = root == kAnything ? std::vector<SchemaId>{} : std::vector{root};
    for (const Shape& one : alternatives_.of(schemas)) {
      if ((one.types & kObject) == 0) continue;
      if (one.values) {
        refuse("", "lists objects in its enum or const, and this model writes arguments one by one: use properties");
      }
      spelled_ = &members;
      ways.push_back(object(one));
      spelled_ = nullptr;
      charge_rules();
    }
  } catch (const LanguageTooLarge& error) {
    document_.refuse_too_large(at_, error.limit);
  }
  json_.rules().define(rule, json_.rules().choice(ways));
  write_waiting();
}

Expr SchemaWriter::member(Expr key, std::string_view name, std::vector<SchemaId> schemas) {
  if (spelled_ == nullptr) return json_.member(key, value(std::move(schemas)));
  const SpelledMembers* members = std::exchange(spelled_, nullptr);  // not of objects inside
  const Expr whole = spelled_member(key, std::move(schemas), members->spelling, members->is_text(name));
  spelled_ = members;
  return whole;
}

Expr SchemaWriter::spelled_member(Expr key, std::vector<SchemaId> schemas, const MemberSpelling& spelling,
                                  bool is_text) {
  Rules& rules = json_.rules();
  const Expr begin = json_.sequence({rules.bytes(spelling.before_key), key});
  const auto other = [&](Expr value) {
    return json_.sequence({begin, rules.bytes(spelling.before_other), value, rules.bytes(spelling.behind_other)});
  };
  if (spelling.end_of_string.empty()) return other(value(std::move(schemas)));
  std::erase(schemas, kAnything);
  std::vector<Expr> ways;
  std::vector<Shape> strings;
  for (Shape one : alternatives_.of(schemas)) {
    if ((one.types & kString) != 0) strings.push_back(one);
    one.types &= static_cast<std::uint8_t>(~kString);
    if (one.values) std::erase_if(*one.values, [](const Listed& value) { return value.value->is_string(); });
    if (one.types != 0 && !(one.values && one.values->empty())) ways.push_back(other(shape(one)));
  }
  if (const auto texts = spelled_strings(strings, spelling, is_text); texts && !texts->empty()) {
    ways.push_back(json_.sequence(
        {begin, rules.bytes(spelling.before_string), texts->write(rules), rules.bytes(spelling.behind_string)}));
  }
  return rules.choice(ways);
}

// The strings of these shapes that can be written so; none: the shapes have no strings.
std::optional<Language> SchemaWriter::spelled_strings(const std::vector<Shape>& shapes, const MemberSpelling& spelling,
                                                      bool is_text) {
  std::optional<Language> all;
  for (const Shape& one : shapes) {
    Language texts = Alternatives::strings(one, budget_);
    all = all ? all->either(texts, budget_) : std::move(texts);
  }
  if (!all) return std::nullopt;
  all = all->without(with_mark(spelling.end_of_string, budget_), budget_);
  if (!spelling.key_mark.empty()) all = all->without(with_mark(spelling.key_mark, budget_), budget_);
  if (!is_text && spelling.before_string == spelling.before_other) {
    all = all->without(looks_like_json(budget_), budget_);
  }
  return all;
}

Expr SchemaWriter::key_of(const std::string& name) {
  if (spelled_ == nullptr) return json_.rules().bytes(json_string(name));
  const auto fits = [](char c) {
    return kLetters.find(c) != kLetters.npos || kDigits.find(c) != kDigits.npos || c == '-' || c == '.' || c == '$';
  };
  if (name.empty() || !std::ranges::all_of(name, fits)) {
    refuse("properties", "has the name \"" + shown(name) +
                             "\", and this model's format of calls has room for letters, digits and _ - . $ only");
  }
  return json_.rules().bytes(name);
}

Expr SchemaWriter::any_key(const Language* keys) {
  if (spelled_ == nullptr) return keys != nullptr ? keys->write_json_string(json_.rules()) : json_.any_string();
  Rules own;
  constexpr std::uint32_t kMaxKey = 64;
  const Expr more = own.byte_set(bytes_of(kLetters) | bytes_of(kDigits));
  const Expr parts[] = {own.byte_set(bytes_of(kLetters)), own.repeat(more, 0, kMaxKey - 1)};
  const Language names = Language::of(own, own.sequence(parts), budget_);
  return (keys != nullptr ? names.both(*keys, budget_) : names).write(json_.rules());
}

}  // namespace quire::grammar
