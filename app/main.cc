#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "app/command_line.h"
#include "app/commands.h"
#include "app/config.h"
#include "core/base/log.h"
#include "core/base/start_error.h"

namespace {

quire::LogLevel level_of(const std::string& name) {
  using enum quire::LogLevel;
  if (name == "debug") return kDebug;
  if (name == "info") return kInfo;
  if (name == "warning") return kWarn;
  return name == "error" ? kError : kOff;
}

int run(const std::vector<std::string>& args) {
  using namespace quire::app;
  Problems problems;
  const CommandLine line = parse_command_line(args, problems);
  if (line.command == Command::kPrint && problems.empty()) {
    std::fputs(line.text.c_str(), stdout);
    return 0;
  }
  std::vector<std::string> notes = line.notes;
  const Config config = read_settings(line.flags, environ, std::move(problems), notes);
  set_log_level(level_of(config.log_level));
  set_log_format(config.log_format == "json" ? quire::LogFormat::kJson : quire::LogFormat::kText);
  switch (line.command) {
    case Command::kServe:
      return line.serve.plan ? plan(config, notes) : serve(config, notes);
    case Command::kGenerate:
      return generate(config, line.generate);
    case Command::kBench:
      return bench(config, line.bench);
    case Command::kInspect:
      return inspect(config, line.inspect);
    case Command::kBuildDatastore:
      return build_datastore(config, line.build_datastore);
    case Command::kKey:
      return make_key(line.key);
    case Command::kPrint:
      break;
  }
  return 0;
}

// Why the process ends, where a person or a log looks for it.
void say_last(const char* what) {
  if (quire::log_format() == quire::LogFormat::kJson) {
    quire::set_log_level(quire::LogLevel::kError);  // whatever else is not to be heard
    return quire::log_error("cannot_go_on", "{}", what);
  }
  std::fprintf(stderr, "quire: %s\n", what);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const quire::StartError& error) {
    say_last(error.what());
  } catch (const std::bad_alloc&) {
    say_last("out of memory; free some, or lower --max-model-len, --max-num-seqs or --kv-cache-memory");
  } catch (const std::exception& error) {
    say_last((std::string("cannot go on: ") + error.what()).c_str());
  }
  return 2;
}
