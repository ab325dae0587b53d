#include "tools/scenario/table.h"

#include "core/base/check.h"

namespace quire::tools {

std::string Table::csv() const {
  std::string out;
  for (const std::string& line : lines_) out += line + "\n";
  return out;
}

std::string Table::join(const std::vector<std::string>& cells) { return fmt::format("{}", fmt::join(cells, ",")); }

void Table::add(const std::vector<std::string>& cells) {
  CHECK_EQ(cells.size(), width_);
  lines_.push_back(join(cells));
}

}  // namespace quire::tools
