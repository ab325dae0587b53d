#include "tools/common/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/config/units.h"
#include "app/http/http_get.h"
#include "core/base/log.h"
#include "tools/common/random_model.h"

namespace quire::tools {
namespace {

constexpr std::string_view kModes[] = {"runner", "micro",   "step",     "profile",
                                       "serve",  "compare", "speculate"};  // in the order of BenchMode

constexpr unsigned bit(BenchMode mode) { return 1u << static_cast<unsigned>(mode); }
constexpr unsigned kScenarios = 1u << 7;
constexpr unsigned kLoads = bit(BenchMode::kServe) | bit(BenchMode::kCompare);
constexpr unsigned kStreams = kLoads | bit(BenchMode::kSpeculate);
constexpr unsigned kModels =
    kStreams | bit(BenchMode::kRunner) | bit(BenchMode::kStep) | bit(BenchMode::kProfile) | kScenarios;
constexpr unsigned kAll = kModels | bit(BenchMode::kMicro);

// clang-format off
constexpr BenchFlag kFlags[] = {
    {"--mode", kAll, "choice", "runner: prefill and decode through the model's runner; micro: speed of each kernel against this machine's memory and arithmetic; step: cost of a step by rows; profile: time of a step by op; serve: the engine with its streams, without HTTP; compare: two servers under the same load; speculate: speedup of verifying draft tokens [runner]"},
    {"--runs", kAll, "count", "runs per median [5; 1..1000]"},
    {"--random-shape", kModels & ~bit(BenchMode::kCompare), "choice", "random weights in the shape of SmolLM2-135M, Qwen3-0.6B, Llama-3.2-1B, of a small Qwen3-MoE with 4 of 16 experts, or of 1B with DeepSeek-V2-Lite's attention: 135m, 0.6b, 1b, 1.2b-a0.4b or 1b-mla"},
    {"--scenario", kScenarios, "choice", "scenario of the scheduler and the KV cache to run, with results as CSV: utilisation, waste, max-batch, preemption, policies, prefix"},
    {"--csv", kScenarios, "path", "file for the scenario's CSV [standard output]"},
    {"--working-set", bit(BenchMode::kMicro), "bytes", "weights, K and V that the kernels cycle through; use several times the CPU's caches [256MiB; 1MiB..64GiB]"},
    {"--streams", kStreams, "counts", "numbers of concurrent streams, comma-separated, one measurement each [1,8,32; 1..4096]"},
    {"--prompt-tokens", kStreams, "count", "tokens of every prompt [128; 1..1048576]"},
    {"--shared-tokens", kLoads, "count", "prompt tokens shared by all requests of a measurement; the first request's TTFT is then reported separately [0]"},
    {"--answer-tokens", kStreams, "count", "tokens of every answer [64; 1..1048576]"},
    {"--requests", kLoads, "count", "requests of a measurement [one per stream, at least 4; 1..1000000]"},
    {"--url", bit(BenchMode::kCompare), "text", "server on this machine, such as http://127.0.0.1:8000; give it twice"},
    {"--rate", bit(BenchMode::kCompare), "number", "open loop instead of --streams: requests per second, sent at random times without waiting for answers [0.001..1000000]"},
    {"--vocab", bit(BenchMode::kCompare), "count", "upper bound of the token ids in prompts [1024; 2..16777216]"},
    {"--draft-alpha", bit(BenchMode::kSpeculate), "number", "probability that the next draft token is accepted [0.75; 0..1]"},
    {"--draft-cost", bit(BenchMode::kSpeculate), "number", "cost of a draft token, in steps of one row [0.1; 0..10]"},
    {"--draft-tokens", bit(BenchMode::kSpeculate), "count", "maximum draft tokens per sequence and step [4; 1..64]"},
};
// clang-format on

const std::vector<std::string>& typed_of(const TypedBenchFlags& typed, std::string_view name) {
  const auto at = std::ranges::find(kFlags, name, &BenchFlag::name);
  return typed[static_cast<std::size_t>(at - std::begin(kFlags))];
}

class Reader {
 public:
  Reader(const TypedBenchFlags& typed, Problems& problems) : typed_(typed), problems_(problems) {}

  std::string text(std::string_view name) const {
    const auto& values = typed_of(typed_, name);
    return values.empty() ? std::string() : values.back();
  }
  template <typename Out, typename T>
  void number(std::string_view name, T low, T high, Out& out) {
    if (typed_of(typed_, name).empty()) return;
    if (const auto value = app::number_in<T>(text(name), low, high)) {
      out = *value;
    } else {
      problem(name, fmt::format("expected a number in {}..{}", low, high));
    }
  }
  void problem(std::string_view name, const std::string& what) {
    problems_.push_back(fmt::format("{} '{}': {}", name, log_safe(text(name)), what));
  }
  void say(std::string what) { problems_.push_back(std::move(what)); }

 private:
  const TypedBenchFlags& typed_;
  Problems& problems_;
};

void read_mode(Reader& reader, BenchOptions& out) {
  const std::string name = reader.text("--mode");
  if (name.empty()) return;
  const auto at = std::ranges::find(kModes, name);
  if (at == std::end(kModes)) return reader.problem("--mode", "expected one of " + bench_mode_names());
  out.mode = static_cast<BenchMode>(at - std::begin(kModes));
}

void read_streams(Reader& reader, BenchOptions& out) {
  const std::string all = reader.text("--streams");
  if (all.empty()) return;
  out.streams.clear();
  for (std::string_view rest = all;;) {
    const std::string_view one = rest.substr(0, rest.find(','));
    const auto count = app::number_in<std::uint32_t>(one, 1, 4096);
    if (!count) return reader.problem("--streams", "expected comma-separated numbers in 1..4096");
    out.streams.push_back(*count);
    if (one.size() == rest.size()) return;
    rest.remove_prefix(one.size() + 1);
  }
}

void read_working_set(Reader& reader, BenchOptions& out) {
  if (reader.text("--working-set").empty()) return;
  const Result<std::uint64_t> bytes = app::parse_bytes(reader.text("--working-set"));
  if (bytes && *bytes >= std::uint64_t{1} << 20 && *bytes <= std::uint64_t{64} << 30) {
    out.working_set_bytes = *bytes;
  } else {
    reader.problem("--working-set", "expected a size in 1MiB..64GiB");
  }
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

void check_urls(Reader& reader, const BenchOptions& bench) {
  if (bench.urls.size() != 2) return reader.say("--mode compare needs two servers: --url URL --url URL");
  for (const std::string& text : bench.urls) {
    const Result<app::Url> url = app::parse_url(text);
    if (!url) {
      reader.say("--url " + url.error().message);
    } else if (!is_loopback(url->host)) {
      reader.say(fmt::format("--url {}: only servers on this machine can be measured", log_safe(text)));
    }
  }
}

void check_scenario(Reader& reader, const BenchOptions& bench) {
  if (bench.scenario.empty()) {
    if (!bench.csv.empty()) reader.say("--csv: needs --scenario");
    return;
  }
  if (std::ranges::find(kScenarioNames, bench.scenario) == std::end(kScenarioNames)) {
    reader.problem("--scenario", "expected one of " + scenario_names());
  }
  if (bench.json) reader.say("--json: scenarios write CSV only; leave it out");
}

// Reports flags that the mode does not read.
void check_modes(Reader& reader, const TypedBenchFlags& typed, const BenchOptions& bench) {
  const bool is_scenario = !bench.scenario.empty();
  const unsigned mode = is_scenario ? kScenarios : bit(bench.mode);
  if (is_scenario && !typed_of(typed, "--mode").empty())
    reader.say("--scenario and --mode cannot be combined: leave one of them out");
  for (std::size_t i = 0; i < std::size(kFlags); ++i) {
    if (typed[i].empty() || (kFlags[i].modes & mode) != 0 || kFlags[i].modes == kScenarios) continue;
    std::string modes;
    for (std::size_t m = 0; m < std::size(kModes); ++m) {
      if ((kFlags[i].modes >> m & 1u) != 0) modes += fmt::format("{}{}", modes.empty() ? "" : " and ", kModes[m]);
    }
    reader.say(fmt::format("{}: only for --mode {}", kFlags[i].name, modes));
  }
}

}  // namespace

std::span<const BenchFlag> bench_flags() { return kFlags; }

std::string bench_mode_names() { return fmt::format("{}", fmt::join(kModes, ", ")); }

BenchOptions read_bench_options(const TypedBenchFlags& typed, bool json, Problems& problems) {
  Reader reader(typed, problems);
  BenchOptions out;
  out.json = json;
  read_mode(reader, out);
  reader.number("--runs", 1u, 1000u, out.runs);
  out.random_shape = reader.text("--random-shape");
  if (!out.random_shape.empty() && !RandomModel::knows(out.random_shape)) {
    reader.problem("--random-shape", "expected 135m, 0.6b, 1b, 1.2b-a0.4b or 1b-mla");
  }
  out.scenario = reader.text("--scenario");
  out.csv = reader.text("--csv");
  read_working_set(reader, out);
  read_streams(reader, out);
  reader.number("--prompt-tokens", 1u, 1048576u, out.prompt_tokens);
  reader.number("--shared-tokens", 0u, out.prompt_tokens, out.shared_tokens);
  reader.number("--answer-tokens", 1u, 1048576u, out.answer_tokens);
  reader.number("--requests", 1u, 1000000u, out.requests);
  out.urls = typed_of(typed, "--url");
  reader.number("--rate", 0.001, 1e6, out.rate);
  reader.number("--vocab", 2u, 16777216u, out.vocab);
  reader.number("--draft-alpha", 0.0, 1.0, out.draft_alpha);
  reader.number("--draft-cost", 0.0, 10.0, out.draft_cost);
  reader.number("--draft-tokens", 1u, 64u, out.draft_tokens);
  check_modes(reader, typed, out);
  check_scenario(reader, out);
  if (out.mode == BenchMode::kCompare && out.scenario.empty()) check_urls(reader, out);
  if (out.rate && !typed_of(typed, "--streams").empty())
    reader.say("--rate and --streams cannot be combined: leave one of them out");
  return out;
}

std::string scenario_names() {
  std::string out;
  for (const std::string_view name : kScenarioNames) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace quire::tools
