// The body of main() for quire and quire-bench: passes the arguments on as strings. An uncaught exception becomes the
// last line on standard error (or of a JSON log) and exit code 2.
// Thread  main.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.h"

namespace quire::app {

// Returns the exit code: the result of `run` for the arguments after the program's name, or 2 if it throws.
int run_program(int argc, char** argv, int (*run)(const std::vector<std::string>& args));

// Sets the level and format of the log from the settings; NO_COLOR in the environment turns its colours off.
void set_log(const Config& config);

}  // namespace quire::app
