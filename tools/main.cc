// quire-bench: the program that `quire bench` runs.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/hub/local_models.h"
#include "app/process/program.h"
#include "tools/bench/bench.h"
#include "tools/command_line.h"

namespace {

int run(const std::vector<std::string>& args) {
  using namespace quire::tools;
  Problems problems;
  const CommandLine line = parse_command_line(args, problems);
  if (line.help) {
    std::fputs(line.help->c_str(), stdout);
    return 0;
  }
  std::vector<std::string> notes;
  const Config config = quire::app::read_settings(line.flags, environ, std::move(problems), notes);
  quire::app::set_log(config);
  return bench(quire::app::with_local_models(config), line.bench);
}

}  // namespace

int main(int argc, char** argv) { return quire::app::run_program(argc, argv, run); }
