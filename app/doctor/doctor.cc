// quire doctor: one page on this machine: what would be fast or slow here, what would fail, and what to do about it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <vector>

#include "app/commands/commands.h"
#include "app/doctor/checks.h"
#include "app/doctor/doctor_report.h"
#include "app/doctor/facts.h"
#include "app/hub/local_models.h"
#include "app/inspection/inspection.h"
#include "app/model/loaded_model.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

doctor::ModelFacts model_facts(const Config& config) {
  doctor::ModelFacts facts{.name = config.model};
  try {
    const Config local = with_local_models(config);
    const ModelSource source = open_model(local.model);
    const Inspection seen = inspect_model(local, source);
    const KvMemory::OfContext& longest = seen.served_kv().contexts.back();
    facts.weight_bytes = seen.packed;
    facts.stream_bytes = longest.bytes;
    facts.longest = longest.tokens;
    facts.free_bytes = seen.free_bytes;
    facts.tokens_per_s = seen.speed.tokens_per_s(0);
    if (!seen.has_weights) facts.problem = local.model + " has a config.json and no weights";
  } catch (const StartError& error) {
    facts.problem = error.what();
  }
  return facts;
}

}  // namespace

int diagnose(const Config& config, const DoctorOptions& options) {
  std::optional<doctor::ModelFacts> model;
  if (options.has_model) model = model_facts(config);
  const std::vector<doctor::Check> checks = doctor::checks_of(doctor::gather_facts(config, environ), model);
  fmt::print("{}", options.json ? doctor::report_json(checks) : doctor::report_text(checks));
  return doctor::worst_of(checks) == doctor::Verdict::kWrong ? 1 : 0;
}

}  // namespace quire::app
