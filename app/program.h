// The body of main() for quire and quire-bench: passes the arguments on as strings, and turns an uncaught exception
// into the last line on standard error (or in a JSON log) and exit code 2.
// Thread  main.
#pragma once

#include <string>
#include <vector>

#include "app/config.h"

namespace quire::app {

// The exit code: what `run` returns for the arguments behind the program's name, or 2 where it throws.
int run_program(int argc, char** argv, int (*run)(const std::vector<std::string>& args));

// The log's level and format, as the settings say.
void set_log(const Config& config);

}  // namespace quire::app
