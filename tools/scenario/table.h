// A table of figures, written as CSV: the column names in the first line, then plain numbers and words.
// Owner   a value.
// Thread  one.
// Fails   a row with another width than the header is our bug (CHECK).
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quire::tools {

class Table {
 public:
  explicit Table(const std::vector<std::string>& columns) : lines_{join(columns)}, width_(columns.size()) {}

  template <typename... Cells>
  void row(const Cells&... cells) {
    add({cell(cells)...});
  }
  std::size_t num_rows() const { return lines_.size() - 1; }
  std::string csv() const;

 private:
  static std::string cell(std::string_view word) { return std::string(word); }
  static std::string cell(std::integral auto number) { return fmt::format("{}", number); }
  static std::string cell(double number) { return fmt::format("{:.6g}", number); }
  static std::string join(const std::vector<std::string>& cells);
  void add(const std::vector<std::string>& cells);

  std::vector<std::string> lines_;
  const std::size_t width_;
};

}  // namespace quire::tools
