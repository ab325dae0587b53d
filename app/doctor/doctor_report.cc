#include "app/doctor/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace quire::app::doctor {

std::string report_text(const std::vector<Check>& checks) {
  std::size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  std::string out;
  for (const Check& check : checks) {
    out += fmt::format("{:<5}  {:<{}}  {}\n", name_of(check.verdict), check.name, width, check.text);
    if (!check.advice.empty()) out += fmt::format("{:<{}}{}\n", "", width + 9, check.advice);
  }
  const auto num_of = [&checks](Verdict verdict) { return std::ranges::count(checks, verdict, &Check::verdict); };
  out += fmt::format("\n{} ok, {} slow, {} wrong\n", num_of(Verdict::kOk), num_of(Verdict::kSlow),
                     num_of(Verdict::kWrong));
  return out;
}

std::string report_json(const std::vector<Check>& checks) {
  boost::json::array rows;
  for (const Check& check : checks) {
    rows.push_back({{"name", check.name},
                    {"verdict", name_of(check.verdict)},
                    {"text", check.text},
                    {"advice", check.advice.empty() ? boost::json::value(nullptr) : boost::json::value(check.advice)},
                    {"facts", check.facts}});
  }
  return boost::json::serialize(boost::json::object{{"verdict", name_of(worst_of(checks))}, {"checks", rows}}) + "\n";
}

}  // namespace quire::app::doctor
