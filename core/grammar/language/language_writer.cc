// Writes a Language as rules: a state with several predecessors becomes a rule, the others are written inline.
#include <cstdio>
#include <map>
#include <optional>

#include "core/grammar/language/language.h"

namespace quire::grammar {
namespace {

// States that are written inside each other. Bounded, because compile() recurses into expressions.
constexpr std::uint32_t kMaxNesting = 64;

bool needs_escape(unsigned byte) { return byte < 0x20 || byte == '"' || byte == '\\'; }

// The escape of a character that may not stand for itself in a JSON string.
Expr escape(Rules& rules, unsigned byte) {
  switch (byte) {
    case '"':
      return rules.bytes("\\\"");
    case '\\':
      return rules.bytes("\\\\");
    case '\b':
      return rules.bytes("\\b");
    case '\f':
      return rules.bytes("\\f");
    case '\n':
      return rules.bytes("\\n");
    case '\r':
      return rules.bytes("\\r");
    case '\t':
      return rules.bytes("\\t");
    default: {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", byte);
      return rules.bytes(text);
    }
  }
}

}  // namespace

class LanguageWriter {
 public:
  LanguageWriter(Rules& rules, const Language& language, bool json) : rules_(rules), language_(language), json_(json) {}

  Expr write() {
    if (language_.empty()) return rules_.choice({});
    count_ways_in();
    const Expr begin = state(language_.start_, 0);
    while (!todo_.empty()) {
      const std::uint32_t next = todo_.back();
      todo_.pop_back();
      rules_.define(*rule_[next], body(next, 0));
    }
    if (!json_) return begin;
    const Expr parts[] = {rules_.bytes("\""), begin};
    return rules_.sequence(parts);
  }

 private:
  std::uint32_t num_states() const { return static_cast<std::uint32_t>(language_.final_.size()); }

  void count_ways_in() {
    rule_.assign(num_states(), std::nullopt);
    ways_in_.assign(num_states(), 0);
    ways_in_[language_.start_] = 1;
    for (std::uint32_t from = 1; from < num_states(); ++from) {
      for (const auto& [to, bytes] : edges(from)) {
        if (to != from) ++ways_in_[to];
      }
    }
  }

  std::map<std::uint32_t, ByteSet> edges(std::uint32_t from) const {
    std::map<std::uint32_t, ByteSet> out;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint32_t to = language_.next(from, static_cast<unsigned char>(byte));
      if (to != 0) out[to].set(byte);
    }
    return out;
  }

  Expr state(std::uint32_t which, std::uint32_t nesting) {
    if (!rule_[which] && ways_in_[which] == 1 && nesting < kMaxNesting) return body(which, nesting);
    if (!rule_[which]) {
      rule_[which] = rules_.declare("state " + std::to_string(which));
      todo_.push_back(which);
    }
    return rules_.use(*rule_[which]);
  }

  Expr body(std::uint32_t which, std::uint32_t nesting) {
    std::vector<Expr> ways;
    std::optional<Expr> loop;
    if (language_.final_[which] != 0) ways.push_back(rules_.bytes(json_ ? "\"" : ""));
    for (const auto& [to, bytes] : edges(which)) {
      if (to == which) {
        loop = rules_.repeat(one_of(bytes), 0, kUnbounded);
        continue;
      }
      const Expr parts[] = {one_of(bytes), state(to, nesting + 1)};
      ways.push_back(rules_.sequence(parts));
    }
    const Expr rest = ways.size() == 1 ? ways[0] : rules_.choice(ways);
    if (!loop) return rest;
    const Expr parts[] = {*loop, rest};
    return rules_.sequence(parts);
  }

  Expr one_of(const ByteSet& bytes) {
    if (!json_) return rules_.byte_set(bytes);
    ByteSet plain;
    ByteSet special;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (bytes[byte]) (needs_escape(byte) ? special : plain).set(byte);
    }
    if (special.none()) return rules_.byte_set(plain);
    if (plain.none()) return escapes(special);
    const Expr ways[] = {rules_.byte_set(plain), escapes(special)};
    return rules_.choice(ways);
  }

  Expr escapes(const ByteSet& special) {
    const std::string key = special.to_string();
    if (const auto found = escapes_.find(key); found != escapes_.end()) return rules_.use(found->second);
    std::vector<Expr> ways;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (special[byte]) ways.push_back(escape(rules_, byte));
    }
    const RuleId rule = rules_.declare("escapes");
    rules_.define(rule, rules_.choice(ways));
    escapes_.emplace(key, rule);
    return rules_.use(rule);
  }

  Rules& rules_;
  const Language& language_;
  const bool json_;
  std::vector<std::uint32_t> ways_in_;
  std::vector<std::optional<RuleId>> rule_;
  std::vector<std::uint32_t> todo_;
  std::map<std::string, RuleId> escapes_;
};

Expr Language::write(Rules& rules) const { return LanguageWriter(rules, *this, false).write(); }

Expr Language::write_json_string(Rules& rules) const { return LanguageWriter(rules, *this, true).write(); }

}  // namespace quire::grammar
