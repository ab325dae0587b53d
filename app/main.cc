#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/word_wrap.h"
#include "app/command_line.h"
#include "app/commands/commands.h"
#include "app/config/config.h"
#include "app/hub/local_models.h"
#include "app/process/program.h"

namespace {

int run(const std::vector<std::string>& args) {
  using namespace quire::app;
  Problems problems;
  const CommandLine line = parse_command_line(args, problems, output_width());
  if (line.command == Command::kBench) return bench(line.bench_args);
  if (line.command == Command::kPrint && problems.empty()) {
    std::fputs(line.text.c_str(), stdout);
    return 0;
  }
  std::vector<std::string> notes = line.notes;
  const Config config = read_settings(line.flags, environ, std::move(problems), notes);
  set_log(config);
  switch (line.command) {
    case Command::kServe:
      return line.serve.plan ? plan(with_local_models(config), notes) : serve(config, notes);
    case Command::kGenerate:
      return generate(with_local_models(config), line.generate);
    case Command::kChat:
      return chat(config, line.flags, line.chat);
    case Command::kInspect:
      return inspect(with_local_models(config), line.inspect);
    case Command::kPs:
      return ps(config, line.operate);
    case Command::kStop:
      return stop(config, line.operate);
    case Command::kDoctor:
      return diagnose(config, line.doctor);
    case Command::kPull:
      return pull(config);
    case Command::kList:
      return list(config, line.list);
    case Command::kRemove:
      return remove(config, line.remove);
    case Command::kQuantize:
      return quantize(with_local_models(config), line.quantize);
    case Command::kBuildDatastore:
      return build_datastore(with_local_models(config), line.build_datastore);
    case Command::kKey:
      return make_key(line.key);
    case Command::kBench:
    case Command::kPrint:
      break;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return quire::app::run_program(argc, argv, run); }
