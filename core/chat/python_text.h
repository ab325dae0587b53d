// Python's string operations on UTF-8, by code points.
// Shape   valid UTF-8 in and out; positions count code points. chars null: white space.
// Thread  any; pure functions.
// Fails   TemplateError: upper case of a character outside ASCII that may have case; lower case of a capital sigma,
//         which depends on its context.
// Source  CPython 3.11's str; markupsafe's escape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::chat {

bool is_python_space(char32_t code);

// `text` without the characters of *chars (null: white space) at the chosen ends.
std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
// str.title(): a word is a run of letters. The title filter splits words differently (filters.cc).
std::string titled(std::string_view text);
std::string escaped_html(std::string_view text);
// max_count < 0 replaces all occurrences.
std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t max_count);
// separator null: runs of white space. The pieces are in reading order, with from_right too.
std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t max_count,
                               bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

// The positions that a slice selects from a sequence of `length`, in order. Fails if the step is 0.
struct Slice {
  std::optional<std::int64_t> start, stop, step;
};
std::vector<std::size_t> sliced(const Slice& slice, std::size_t length);

}  // namespace quire::chat
