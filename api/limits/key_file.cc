#include "api/limits/key_file.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace quire::api::keys {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::string_view kBlanks = " \t\r";

struct Problem {
  std::string field;  // empty: a problem of the whole line
  std::string text;
};

// Quotes a word that looks like a field's name. Any other word is not shown: it may be a secret in the wrong place.
std::string shown(std::string_view word) {
  constexpr std::size_t kMaxShown = 24;
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const bool shows = word.size() <= kMaxShown && std::ranges::all_of(word, is_part);
  return shows ? "field '" + std::string(word) + "'" : "field of that name";
}

using Take = std::optional<Problem> (*)(std::string_view value, KeyEntry& entry);

std::optional<Problem> bad_name(std::string_view field) {
  return Problem{std::string(field),
                 "expected 1 to " + std::to_string(kMaxNameBytes) + " letters, digits and the characters - _ ."};
}

template <typename Number>
std::optional<Problem> take_number(std::string_view field, std::string_view value, std::uint32_t most, Number& out) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number == 0 || number > most) {
    return Problem{std::string(field), "expected a whole number in 1.." + std::to_string(most)};
  }
  out = number;
  return std::nullopt;
}

std::optional<Problem> take_limit(std::string_view field, std::string_view value, std::optional<std::uint32_t>& out) {
  return take_number(field, value, std::numeric_limits<std::uint32_t>::max(), out);
}

struct FieldOfKey {
  std::string_view name;
  Take take;
};

constexpr FieldOfKey kFields[] = {
    {"name",
     [](std::string_view value, KeyEntry& entry) {
       entry.name = value;
       return is_name(value) ? std::nullopt : bad_name("name");
     }},
    {"hash",
     [](std::string_view value, KeyEntry& entry) -> std::optional<Problem> {
       const bool tagged = value.starts_with(kHashPrefix);
       const auto digest = tagged ? digest_from_hex(value.substr(kHashPrefix.size())) : std::nullopt;
       if (!digest) return Problem{"hash", "expected sha256: and 64 hexadecimal digits (quire key makes them)"};
       entry.digest = *digest;
       return std::nullopt;
     }},
    {"role",
     [](std::string_view value, KeyEntry& entry) -> std::optional<Problem> {
       const auto role = role_of(value);
       if (!role) return Problem{"role", "expected user, admin or monitor"};
       entry.role = *role;
       return std::nullopt;
     }},
    {"max_running", [](std::string_view value,
                       KeyEntry& entry) { return take_limit("max_running", value, entry.limits.max_running); }},
    {"max_queued",
     [](std::string_view value, KeyEntry& entry) { return take_limit("max_queued", value, entry.limits.max_queued); }},
    {"tokens_per_minute",
     [](std::string_view value, KeyEntry& entry) {
       return take_limit("tokens_per_minute", value, entry.limits.tokens_per_minute);
     }},
    {"tenant",
     [](std::string_view value, KeyEntry& entry) {
       entry.tenant = value;
       return is_name(value) ? std::nullopt : bad_name("tenant");
     }},
    {"weight",
     [](std::string_view value, KeyEntry& entry) { return take_number("weight", value, kMaxWeight, entry.weight); }},
};

std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

std::optional<Problem> take_word(std::string_view word, KeyEntry& entry, std::vector<std::string_view>& given) {
  const std::size_t equals = word.find('=');
  // The word is not shown: it may be a key that was pasted here.
  if (equals == std::string_view::npos) return Problem{"", "expected field=value, found a word without ="};
  const std::string_view name = word.substr(0, equals);
  const auto* const field = std::ranges::find(kFields, name, &FieldOfKey::name);
  if (field == std::end(kFields)) {
    return Problem{
        "", "there is no " + shown(name) +
                "; the fields are name, hash, role, max_running, max_queued, tokens_per_minute, tenant and weight"};
  }
  if (std::ranges::find(given, name) != given.end()) return Problem{std::string(name), "given twice"};
  given.push_back(field->name);
  return field->take(word.substr(equals + 1), entry);
}

std::vector<Problem> take_line(std::string_view line, KeyEntry& entry) {
  std::vector<Problem> problems;
  std::vector<std::string_view> given;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    if (auto problem = take_word(word, entry, given)) problems.push_back(std::move(*problem));
  }
  for (const std::string_view needed : {"name", "hash"}) {
    if (std::ranges::find(given, needed) == given.end()) problems.push_back({std::string(needed), "missing"});
  }
  return problems;
}

class Reader {
 public:
  void take(std::size_t number, std::string_view line) {
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] == '#') return;
    if (line.size() > kMaxLineBytes) {
      return say(number, {"", "longer than " + std::to_string(kMaxLineBytes) + " bytes"});
    }
    KeyEntry entry;
    const std::vector<Problem> problems = take_line(line, entry);
    for (const Problem& problem : problems) say(number, problem);
    if (!problems.empty()) return;
    const auto [of_name, new_name] = names_.emplace(entry.name, number);
    if (!new_name)
      return say(number, {"name", entry.name + " is already the name of line " + std::to_string(of_name->second)});
    const auto [of_hash, new_hash] = hashes_.emplace(entry.digest, number);
    if (!new_hash) return say(number, {"hash", "the same as in line " + std::to_string(of_hash->second)});
    if (file_.entries.size() == kMaxKeys) {
      return say(number, {"", "more than " + std::to_string(kMaxKeys) + " keys"});
    }
    file_.entries.push_back(std::move(entry));
  }

  KeyFile finish() && { return std::move(file_); }

 private:
  void say(std::size_t number, const Problem& problem) {
    file_.problems.push_back("line " + std::to_string(number) + ": " +
                             (problem.field.empty() ? "" : problem.field + ": ") + problem.text);
  }

  KeyFile file_;
  std::map<std::string, std::size_t, std::less<>> names_;  // name → its line
  std::map<Digest, std::size_t> hashes_;                   // hash → its line
};

}  // namespace

KeyFile parse_key_file(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return {{}, {"the file is longer than " + std::to_string(kMaxFileBytes) + " bytes"}};
  }
  Reader reader;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    reader.take(number, line);
  }
  return std::move(reader).finish();
}

bool is_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, is_plain);
}

std::optional<Role> role_of(std::string_view word) {
  for (const Role role : {Role::kUser, Role::kMonitor, Role::kAdmin}) {
    if (word == name_of(role)) return role;
  }
  return std::nullopt;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::kUser:
      return "user";
    case Role::kMonitor:
      return "monitor";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

std::string line_of(const KeyEntry& entry) {
  std::string line = "name=" + entry.name + " hash=" + std::string(kHashPrefix) + hex_of(entry.digest) +
                     " role=" + name_of(entry.role);
  const auto add = [&line](std::string_view name, const std::optional<std::uint32_t>& limit) {
    if (limit) line += " " + std::string(name) + "=" + std::to_string(*limit);
  };
  add("max_running", entry.limits.max_running);
  add("max_queued", entry.limits.max_queued);
  add("tokens_per_minute", entry.limits.tokens_per_minute);
  if (!entry.tenant.empty()) line += " tenant=" + entry.tenant;
  if (entry.weight != 1) line += " weight=" + std::to_string(entry.weight);
  return line;
}

}  // namespace quire::api::keys
