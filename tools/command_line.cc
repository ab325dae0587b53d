#include "tools/command_line.h"

#include <algorithm>
#include <utility>

#include "app/cli/help_pages.h"
#include "app/cli/word_wrap.h"
#include "app/config/command_flags.h"

namespace quire::tools {
namespace {

void add_flags(CLI::App& command, TypedBenchFlags& typed) {
  typed.resize(bench_flags().size());
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const BenchFlag& flag = bench_flags()[i];
    command.add_option(std::string(flag.name), typed[i], std::string(flag.help))
        ->type_name(std::string(flag.kind))
        ->expected(1)
        ->allow_extra_args(false)  // the word after the value is MODEL
        ->multi_option_policy(flag.name == "--url" ? CLI::MultiOptionPolicy::TakeAll
                                                   : CLI::MultiOptionPolicy::TakeLast);
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems) {
  CLI::App command("Measure steps, kernels, the engine or two servers, and compare with what this machine can do",
                   "bench");
  app::Typed typed;
  TypedBenchFlags typed_flags;
  bool json = false;
  command.allow_extras();
  command.set_help_flag();  // looked for below
  app::add_fields(command, app::kBench, typed);
  add_flags(command, typed_flags);
  command.add_flag("--json", json, "print JSON");

  CommandLine out;
  for (const std::string& arg : args) {
    const char* topic = app::help_topic(arg);
    if (topic == nullptr) continue;
    Result<std::string> page = app::command_help(command, topic, app::output_width());
    if (!page) problems.push_back(page.error().message);
    if (page) out.help = std::move(*page);
    return out;
  }
  try {
    command.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 reads them from the back
  } catch (const CLI::ParseError& error) {
    problems.push_back(error.what());
    return out;
  }
  out.flags = app::take_settings(command, typed, problems);
  out.bench = read_bench_options(typed_flags, json, problems);
  const bool takes_no_model = out.bench.mode == BenchMode::kCompare || out.bench.mode == BenchMode::kMicro;
  if (takes_no_model && out.flags.contains("model")) {
    problems.push_back("this --mode loads no model: leave MODEL out");
  }
  return out;
}

}  // namespace quire::tools
