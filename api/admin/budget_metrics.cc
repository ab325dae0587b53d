#include "api/admin/budget_metrics.h"

#include <cstdint>

namespace quire::api::admin {
namespace {

struct Row {
  const char* budget;
  std::uint64_t held;
  std::uint64_t limit;
  std::uint64_t refused;
};

struct LaneRow {
  const char* lane;
  concurrent::FairWorkers::Figures figures;
};

void append_head(std::string& text, const char* name, const char* type, const char* help) {
  text.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
  text.append(type).append("\n");
}

void append_line(std::string& text, const char* name, const char* label, const char* value, const std::string& number) {
  text.append(name).append("{").append(label).append("=\"").append(value).append("\"} ").append(number).append("\n");
}

}  // namespace

void append_budget_metrics(std::string& text, const Services& services) {
  const auto row_of = [](const char* name, const concurrent::ByteBudget& budget) {
    return Row{name, budget.held(), budget.limit(), budget.num_refused()};
  };
  const Row rows[] = {row_of("bodies", services.budgets.bodies), row_of("answers", services.budgets.answers)};
  append_head(text, "quire:budget_held_bytes", "gauge", "Bytes of a budget in use.");
  for (const Row& row : rows) {
    append_line(text, "quire:budget_held_bytes", "budget", row.budget, std::to_string(row.held));
  }
  append_head(text, "quire:budget_limit_bytes", "gauge",
              "Maximum bytes of a budget; one caller may use at most 3/4 of it.");
  for (const Row& row : rows) {
    append_line(text, "quire:budget_limit_bytes", "budget", row.budget, std::to_string(row.limit));
  }
  append_head(text, "quire:budget_refused_total", "counter",
              "Requests for bytes of a budget that were refused because too few were left.");
  for (const Row& row : rows) {
    append_line(text, "quire:budget_refused_total", "budget", row.budget, std::to_string(row.refused));
  }
  const LaneRow lanes[] = {{"quick", services.workers.figures(Lane::kQuick)},
                           {"slow", services.workers.figures(Lane::kSlow)}};
  append_head(text, "quire:work_jobs", "gauge", "Requests that are being read or wait to be read, by lane.");
  for (const LaneRow& row : lanes) {
    append_line(text, "quire:work_jobs", "lane", row.lane, std::to_string(row.figures.jobs));
  }
  append_head(text, "quire:work_held_bytes", "gauge",
              "Bytes of the bodies of requests that are being read or wait to be read, by lane.");
  for (const LaneRow& row : lanes) {
    append_line(text, "quire:work_held_bytes", "lane", row.lane, std::to_string(row.figures.bytes));
  }
  append_head(text, "quire:work_processor_seconds_total", "counter",
              "CPU seconds spent on reading bodies, tokenising and compiling grammars, by lane.");
  for (const LaneRow& row : lanes) {
    append_line(text, "quire:work_processor_seconds_total", "lane", row.lane, std::to_string(row.figures.processor_s));
  }
  append_head(text, "quire:work_refused_total", "counter",
              "Requests answered 429 because a lane had too many requests or bytes waiting, by lane.");
  for (const LaneRow& row : lanes) {
    append_line(text, "quire:work_refused_total", "lane", row.lane, std::to_string(row.figures.refused));
  }
}

}  // namespace quire::api::admin
