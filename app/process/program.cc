#include "app/process/program.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

LogLevel level_of(const std::string& name) {
  using enum LogLevel;
  if (name == "debug") return kDebug;
  if (name == "info") return kInfo;
  if (name == "warning") return kWarn;
  return name == "error" ? kError : kOff;
}

// Prints why the process ends: to standard error, or to the JSON log.
void say_last(const char* what) {
  if (log_format() == LogFormat::kJson) {
    set_log_level(LogLevel::kError);  // shown whatever --log-level says
    return log_error("cannot_go_on", "{}", what);
  }
  std::fprintf(stderr, "quire: %s\n", what);
}

}  // namespace

int run_program(int argc, char** argv, int (*run)(const std::vector<std::string>& args)) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const StartError& error) {
    say_last(error.what());
  } catch (const std::bad_alloc&) {
    say_last("out of memory: free some, or lower --max-model-len, --max-num-seqs or --kv-cache-memory");
  } catch (const std::exception& error) {
    say_last((std::string("fatal error: ") + error.what()).c_str());
  }
  return 2;
}

void set_log(const Config& config) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') no_log_colours();
  set_log_level(level_of(config.log_level));
  set_log_format(config.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
}

}  // namespace quire::app
