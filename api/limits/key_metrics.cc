#include "api/limits/key_metrics.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace quire::api::keys {
namespace {

using bridge::Account;

struct Series {
  const char* name;
  const char* type;
  const char* help;
  std::uint64_t (*value)(const Account::Figures&);
};

constexpr Series kSeries[] = {
    {"quire:key_running_sequences", "gauge", "Running and waiting sequences of a key.",
     [](const Account::Figures& f) { return std::uint64_t{f.running}; }},
    {"quire:key_waiting_sequences", "gauge", "Waiting sequences of a key.",
     [](const Account::Figures& f) { return std::uint64_t{f.waiting}; }},
    {"quire:key_requests_total", "counter", "Requests of a key that were within its limits.",
     [](const Account::Figures& f) { return f.requests; }},
    {"quire:key_prompt_tokens_total", "counter", "Prompt tokens of a key's finished requests.",
     [](const Account::Figures& f) { return f.prompt_tokens; }},
    {"quire:key_generation_tokens_total", "counter", "Generated tokens of a key's finished requests.",
     [](const Account::Figures& f) { return f.completion_tokens; }},
};

void append_head(std::string& text, const std::string& name, const char* type, const char* help) {
  text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

void append_metrics(std::string& text, const KeyTable& table) {
  std::vector<std::pair<std::string, Account::Figures>> keys;
  for (const auto& caller : table.callers()) keys.emplace_back(caller->name, caller->account->figures());
  for (const Series& series : kSeries) {
    append_head(text, series.name, series.type, series.help);
    for (const auto& [key, figures] : keys) {
      text += std::string(series.name) + "{key=\"" + key + "\"} " + std::to_string(series.value(figures)) + "\n";
    }
  }
  const std::string weight = "quire:key_weight";
  append_head(text, weight, "gauge", "Weight of a key within its tenant under policy fair.");
  for (const auto& caller : table.callers()) {
    const std::string tenant = caller->tenant.empty() ? std::string(kDefaultTenant) : caller->tenant;
    text +=
        weight + "{key=\"" + caller->name + "\",tenant=\"" + tenant + "\"} " + std::to_string(caller->weight) + "\n";
  }
  const std::string refused = "quire:key_refused_requests_total";
  append_head(text, refused, "counter", "Requests of a key that exceeded one of its limits and were answered 429.");
  for (const auto& [key, figures] : keys) {
    for (std::size_t limit = 0; limit < figures.refused.size(); ++limit) {
      text += refused + "{key=\"" + key + "\",limit=\"" + Account::name_of(static_cast<Account::Limit>(limit)) +
              "\"} " + std::to_string(figures.refused[limit]) + "\n";
    }
  }
}

}  // namespace quire::api::keys
