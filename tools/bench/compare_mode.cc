// quire bench --mode compare: two servers on this machine under the same load, alternating, and the ratio of each
// figure.
//   A round measures both servers, in alternating order. A figure is the median of the rounds, a ratio the median of
//   the rounds' ratios, so that a slower machine slows both. One answer of each measurement is requested again without
//   other load, and answers whose text then differs are counted.
// Thread  main.
#include <fmt/format.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/model/machine.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "tools/bench/bench.h"
#include "tools/bench/http_load.h"
#include "tools/bench/load.h"
#include "tools/common/figures.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::minutes(10);
constexpr Duration kModelsTimeout = std::chrono::seconds(30);
// The threads of the server measured before spin for some time after its last answer.
constexpr Duration kRest = std::chrono::seconds(1);

// Name of the server's first model.
std::string model_of(const Url& url) {
  const Result<std::string> body = http_get(url, "/v1/models", kModelsTimeout);
  if (!body) throw StartError("--url " + body.error().message);
  boost::json::error_code error;
  const boost::json::value parsed = boost::json::parse(*body, error);
  const boost::json::value* id = error ? nullptr : parsed.find_pointer("/data/0/id", error);
  if (error || id == nullptr || !id->is_string())
    throw StartError(fmt::format("--url {}: /v1/models lists no model", url.text));
  return std::string(id->as_string());
}

struct Side {
  HttpLoad load;
  std::vector<LoadFigures> rounds;
  std::uint32_t asked_again = 0;
  std::uint32_t changed = 0;
  std::string why;  // reason of the first answer that was not good
};

// Results for one number of streams.
struct Row {
  std::uint32_t streams = 0;  // 0: open loop
  std::array<Side, 2> sides;
};

void measure(Side& side, std::uint64_t round, bool first_is_apart) {
  const Measurement measurement = put_under_load(side.load, round);
  side.rounds.push_back(figures_of(measurement, first_is_apart));
  for (const Answer& answer : measurement.answers) {
    if (side.why.empty()) side.why = answer.why;
  }
  const Answer& crowded = measurement.answers.back();
  if (crowded.verdict != Answer::Verdict::kGood) return;
  const Answer alone = ask_alone(side.load, round, side.load.num_requests - 1);
  ++side.asked_again;
  if (alone.verdict != Answer::Verdict::kGood || alone.text != crowded.text) ++side.changed;
}

// Ratio of a figure in favour of the first server: 2 is twice the tokens, or half the time.
double ratio(const Row& row, double LoadFigures::*figure, bool more_is_better) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.sides[0].rounds.size(); ++i) {
    const double a = row.sides[0].rounds[i].*figure;
    const double b = row.sides[1].rounds[i].*figure;
    if (a > 0 && b > 0) ratios.push_back(more_is_better ? a / b : b / a);
  }
  return ratios.empty() ? 0 : median(std::move(ratios));
}

struct Figure {
  const char* name;
  const char* label;
  double LoadFigures::*value;
  bool more_is_better;
  double scale;
};
constexpr Figure kFigures[] = {
    {"tokens_per_s", "tokens/s", &LoadFigures::tokens_per_s, true, 1},
    {"ttft_p50_s", "TTFT p50, ms", &LoadFigures::ttft_p50_s, false, 1e3},
    {"ttft_p99_s", "TTFT p99, ms", &LoadFigures::ttft_p99_s, false, 1e3},
    {"gap_p50_s", "gap p50, ms", &LoadFigures::gap_p50_s, false, 1e3},
    {"gap_p99_s", "gap p99, ms", &LoadFigures::gap_p99_s, false, 1e3},
    {"first_ttft_s", "first TTFT, ms", &LoadFigures::first_ttft_s, false, 1e3},
};

void print_text(const Row& row) {
  const std::array<LoadFigures, 2> of = {median_of(row.sides[0].rounds), median_of(row.sides[1].rounds)};
  fmt::print("{}\n", row.streams == 0 ? "open loop" : fmt::format("{} streams", row.streams));
  for (const Figure& figure : kFigures) {
    fmt::print("  {:<16} {:>12.2f} {:>12.2f} {:>8.2f}\n", figure.label, of[0].*figure.value * figure.scale,
               of[1].*figure.value * figure.scale, ratio(row, figure.value, figure.more_is_better));
  }
  fmt::print("  {:<16} {:>12.2f} {:>12.2f}\n", "client's CPUs", of[0].client_cpu, of[1].client_cpu);
  const auto counts = [&](const char* label, auto count) {
    fmt::print("  {:<16} {:>12} {:>12}\n", label, count(0), count(1));
  };
  counts("requests", [&](std::size_t i) { return of[i].requests; });
  counts("failed", [&](std::size_t i) { return of[i].failed; });
  counts("wrong", [&](std::size_t i) { return of[i].wrong; });
  counts("differs alone",
         [&](std::size_t i) { return fmt::format("{} of {}", row.sides[i].changed, row.sides[i].asked_again); });
}

boost::json::object json_of(const Row& row) {
  boost::json::object out = {{"streams", row.streams}};
  boost::json::array servers;
  for (const Side& side : row.sides) {
    boost::json::object server = json_of(median_of(side.rounds));
    server["asked_again"] = side.asked_again;
    server["changed"] = side.changed;
    if (!side.why.empty()) server["why"] = side.why;
    servers.push_back(std::move(server));
  }
  out["servers"] = std::move(servers);
  boost::json::object ratios;
  for (const Figure& figure : kFigures) ratios[figure.name] = ratio(row, figure.value, figure.more_is_better);
  out["ratios"] = std::move(ratios);
  return out;
}

void say_warnings(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (const Side& side : row.sides) {
      if (!side.why.empty()) fmt::print(stderr, "{}: {}\n", side.load.url.text, side.why);
    }
  }
}

bool all_good(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (const Side& side : row.sides) {
      for (const LoadFigures& one : side.rounds) {
        if (one.failed + one.wrong != 0) return false;
      }
    }
  }
  return true;
}

}  // namespace

int bench_compare(const BenchOptions& options) {
  const Progress progress("bench --mode compare");
  std::array<HttpLoad, 2> loads;
  for (std::size_t i = 0; i < 2; ++i) {
    HttpLoad& load = loads[i];
    const Result<Url> url = app::parse_url(options.urls[i]);
    CHECK(url.ok());  // checked by the command line
    load.url = *url;
    load.model = model_of(load.url);
    load.prompts = {options.prompt_tokens, options.shared_tokens, options.vocab};
    load.answer_tokens = options.answer_tokens;
    load.rate = options.rate;
    load.timeout = kAnswerTimeout;
    progress.say("warming up " + load.url.text);
    const Answer answer = ask_alone(load, /*round=*/0, 0);
    if (answer.verdict == Answer::Verdict::kFailed) throw StartError("--url " + load.url.text + ": " + answer.why);
  }

  std::vector<Row> rows;
  std::uint64_t round = 1;
  for (const std::uint32_t streams : options.rate ? std::vector<std::uint32_t>{0} : options.streams) {
    Row row{streams, {Side{loads[0], {}, 0, 0, {}}, Side{loads[1], {}, 0, 0, {}}}};
    for (Side& side : row.sides) {
      side.load.streams = streams;
      side.load.num_requests = num_requests(options, streams);
    }
    for (std::uint32_t run = 0; run < options.runs; ++run, ++round) {
      for (std::size_t turn = 0; turn < 2; ++turn) {
        Side& side = row.sides[(turn + run) % 2];
        progress.say(fmt::format("{} streams, round {} of {}, {}", streams, run + 1, options.runs, side.load.url.text));
        std::this_thread::sleep_for(kRest);
        measure(side, round, options.shared_tokens > 0);
      }
    }
    rows.push_back(std::move(row));
  }

  if (options.json) {
    boost::json::object out = {{"mode", "compare"},
                               {"cpu", app::cpu_name()},
                               {"runs", options.runs},
                               {"prompt_tokens", options.prompt_tokens},
                               {"shared_tokens", options.shared_tokens},
                               {"answer_tokens", options.answer_tokens}};
    if (options.rate) out["rate"] = *options.rate;
    boost::json::array servers;
    for (const HttpLoad& load : loads) servers.push_back({{"url", load.url.text}, {"model", load.model}});
    out["servers"] = std::move(servers);
    boost::json::array all;
    for (const Row& row : rows) all.push_back(json_of(row));
    out["rows"] = std::move(all);
    print_json(out);
  } else {
    fmt::print("A: {} ({})\nB: {} ({})\n", loads[0].url.text, loads[0].model, loads[1].url.text, loads[1].model);
    fmt::print("{}; medians of {} rounds; prompts of {} tokens, answers of {}\n\n{:<18} {:>12} {:>12} {:>8}\n",
               app::cpu_name(), options.runs, options.prompt_tokens, options.answer_tokens, "", "A", "B", "A better");
    for (const Row& row : rows) print_text(row);
  }
  say_warnings(rows);
  return all_good(rows) ? 0 : 1;
}

}  // namespace quire::tools
