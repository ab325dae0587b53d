// Text in lines of a terminal's width.
// Shape   widths are columns; every character of UTF-8 counts as one. Words are never cut: one that is longer than a
//         line has a line of its own.
// Thread  any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::app {

// `text` with `indent` blanks before each line; ends with a newline.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

// As wrapped(), of parts that are not broken themselves.
std::string in_lines(const std::vector<std::string>& parts, std::size_t indent, std::size_t width);

// `text` in a column that begins at `indent`, with `head` before its first line, or above it where it is too long.
std::string with_head(std::string_view head, std::string_view text, std::size_t indent, std::size_t width);

// Columns of the terminal that standard output is; 80 if it is none.
std::size_t output_width();

}  // namespace quire::app
