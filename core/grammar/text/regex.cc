#include "core/grammar/text/regex.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/grammar/text/regex_syntax.h"

namespace quire::grammar {
namespace {

// The context on one side of a part of the pattern.
enum class Side : std::uint8_t {
  kEdge,   // the end of the text
  kAny,    // any text, up to its end
  kInner,  // another part of the pattern
};

class Emission {
 public:
  Emission(Rules& rules, const std::vector<RegexItem>& items, const EmitCharacter& emit)
      : rules_(rules), items_(items), emit_(emit) {}

  Result<Expr> run(RegexUse use) {
    const Side side = use == RegexUse::kSearch ? Side::kAny : Side::kEdge;
    const Expr e = item(0, side, side);
    if (error_) return *error_;
    return e;
  }

 private:
  using Row = std::vector<std::uint32_t>;

  // Each of these also matches the texts that its sides allow before and after it.
  Expr item(std::uint32_t index, Side before, Side after);
  Expr group(const RegexItem& group, Side before, Side after);
  Expr row(const Row& row, Side before, Side after);
  Expr repeat(const RegexItem& repeat, Side before, Side after);

  Expr between(Side before, std::optional<Expr> inner, Side after);
  Expr character(const CodePointSet& set);
  Expr nothing() { return rules_.bytes(""); }
  Expr fail(const RegexItem& item, const std::string& what) {
    if (!error_) error_ = regex_error(item.at, what);
    return nothing();
  }

  Rules& rules_;
  const std::vector<RegexItem>& items_;
  const EmitCharacter& emit_;
  std::map<CodePointSet, Expr> characters_;
  std::optional<Error> error_;
};

Expr Emission::item(std::uint32_t index, Side before, Side after) {
  const RegexItem& it = items_[index];
  switch (it.kind) {
    case RegexItem::Kind::kSet:
      return between(before, character(it.set), after);
    case RegexItem::Kind::kStart:
      return fail(it, "'^' is supported at the beginning of a branch only");
    case RegexItem::Kind::kEnd:
      return fail(it, "'$' is supported at the end of a branch only");
    case RegexItem::Kind::kGroup:
      if (it.anchored) return group(it, before, after);
      return between(before, group(it, Side::kInner, Side::kInner), after);
    case RegexItem::Kind::kRepeat:
      if (it.anchored) return repeat(it, before, after);
      return between(before, repeat(it, Side::kInner, Side::kInner), after);
  }
  return nothing();
}

Expr Emission::group(const RegexItem& group, Side before, Side after) {
  std::vector<Expr> ways;
  for (const Row& branch : group.branches) ways.push_back(row(branch, before, after));
  return ways.size() == 1 ? ways.front() : rules_.choice(ways);
}

Expr Emission::row(const Row& row, Side before, Side after) {
  auto first = row.begin();
  auto last = row.end();
  for (; first != last && items_[*first].kind == RegexItem::Kind::kStart; ++first) {
    if (before == Side::kInner) return item(*first, before, after);  // reports the error
    before = Side::kEdge;
  }
  for (; first != last && items_[*(last - 1)].kind == RegexItem::Kind::kEnd; --last) {
    if (after == Side::kInner) return item(*(last - 1), before, after);
    after = Side::kEdge;
  }
  if (first == last) return between(before, std::nullopt, after);
  std::vector<Expr> parts;
  for (auto it = first; it != last; ++it) {
    parts.push_back(item(*it, it == first ? before : Side::kInner, it + 1 == last ? after : Side::kInner));
  }
  return parts.size() == 1 ? parts.front() : rules_.sequence(parts);
}

Expr Emission::repeat(const RegexItem& repeat, Side before, Side after) {
  const RegexItem& part = items_[repeat.part];
  if (!part.anchored) {
    return rules_.repeat(item(repeat.part, Side::kInner, Side::kInner), repeat.least, repeat.most);
  }
  if (repeat.most != 1) return fail(part, "a part with '^' or '$' cannot be repeated");
  const Expr once = item(repeat.part, before, after);
  if (repeat.least == 1) return once;
  const Expr ways[] = {once, between(before, std::nullopt, after)};
  return rules_.choice(ways);
}

Expr Emission::between(Side before, std::optional<Expr> inner, Side after) {
  const auto any = [this] { return rules_.repeat(character(all_but({})), 0, kUnbounded); };
  if (!inner) return before == Side::kAny || after == Side::kAny ? any() : nothing();
  std::vector<Expr> parts;
  if (before == Side::kAny) parts.push_back(any());
  parts.push_back(*inner);
  if (after == Side::kAny) parts.push_back(any());
  return parts.size() == 1 ? *inner : rules_.sequence(parts);
}

Expr Emission::character(const CodePointSet& set) {
  if (set.empty()) return rules_.choice({});
  const auto known = characters_.find(set);
  if (known != characters_.end()) return known->second;
  const Expr made = emit_(rules_, set);
  characters_.emplace(set, made);
  return made;
}

}  // namespace

Result<Expr> regex(Rules& rules, std::string_view pattern, RegexUse use, const EmitCharacter& emit,
                   const RegexFlags& flags) {
  const Result<std::vector<RegexItem>> items = parse_regex(pattern, flags);
  if (!items) return items.error();
  return Emission(rules, *items, emit).run(use);
}

}  // namespace quire::grammar
