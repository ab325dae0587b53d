// The spelling of an object in text that is not JSON: its members one after another, as models write the arguments of
// calls.
//   before_key key (before_string string behind_string | before_other value behind_other), with `between` between two
// Shape   values are JSON, but for strings where `end_of_string` is not empty: these are any text without it and
//         without `key_mark`.
// Owner   constants of the caller.
// Source  ours.
#pragma once

#include <functional>
#include <string_view>

namespace quire::grammar {

struct MemberSpelling {
  std::string_view before_key;
  std::string_view before_string;
  std::string_view before_other;
  std::string_view behind_string;
  std::string_view behind_other;
  std::string_view between;
  std::string_view end_of_string;
  std::string_view key_mark{};
};

// `is_text`: whether a reader takes every value of the member for a string; "": of one that no schema names.
struct SpelledMembers {
  const MemberSpelling& spelling;
  const std::function<bool(std::string_view name)>& is_text;
};

}  // namespace quire::grammar
