#include "app/drafting/step_costs_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/base/check.h"

namespace quire::app {
namespace {

constexpr std::string_view kVersionLine = "quire step costs 1\n";
constexpr std::size_t kMaxBytes = 1 << 16;  // far more than any table needs

Error no_use(const std::string& path, std::string_view why) {
  return {Code::kNotFound, fmt::format("step costs in {}: {}", path, why), "", 0};
}

std::string last_line(const std::string& table) {
  return fmt::format("end {}\n", std::count(table.begin(), table.end(), '\n'));
}

}  // namespace

std::string step_costs_key(const std::string& numeric_mode, const std::string& cpu, std::uint32_t threads) {
  return fmt::format("{}; {}, {} threads", numeric_mode, cpu, threads);
}

Result<Done> read_step_costs(const std::string& path, const std::string& key, speculate::StepCosts& out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return no_use(path, "cannot be read");
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes) return no_use(path, "the file is too long to be a table of step costs");
  const std::string head = std::string(kVersionLine) + key + "\n";
  if (!text.starts_with(kVersionLine)) return no_use(path, "not a table of step costs of this version");
  if (!text.starts_with(head)) return no_use(path, "measured with another model, numeric mode or machine");
  const std::string rest = text.substr(head.size());
  const std::size_t end = rest.rfind("end ");
  if (end == std::string::npos || rest.substr(end) != last_line(rest.substr(0, end))) {
    return no_use(path, "the end is missing: the file was cut off, or changed");
  }
  if (const Result<Done> read = out.read(std::string_view(rest).substr(0, end)); !read) {
    return no_use(path, read.error().message);
  }
  return Done{};
}

Result<Done> write_step_costs(const std::string& path, const std::string& key, const speculate::StepCosts& costs) {
  CHECK(key.find('\n') == std::string::npos);
  const std::string part = fmt::format("{}.{}.part", path, ::getpid());
  {
    // Not synced: if a power cut leaves a part of it, the end is missing, and the costs are measured again.
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    const std::string table = costs.text();
    file << kVersionLine << key << '\n' << table << last_line(table);
    file.close();
    if (!file) {
      std::remove(part.c_str());
      return no_use(path, "cannot be written");
    }
  }
  if (std::rename(part.c_str(), path.c_str()) == 0) return Done{};
  std::remove(part.c_str());
  return no_use(path, "cannot be replaced");
}

}  // namespace quire::app
