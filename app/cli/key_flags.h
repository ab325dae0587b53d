// The flags of `quire key`.
// Owner   the parser of the command line; add() before parsing, take() afterwards.
// Thread  main.
// Fails   every problem is collected.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/commands/commands.h"
#include "app/config/config.h"

namespace quire::app {

class KeyFlags {
 public:
  void add(CLI::App& command, KeyOptions& key);
  void take(KeyOptions& key, Problems& problems) const;

 private:
  std::string role_, running_, queued_, tokens_, weight_;
  bool admin_ = false;
};

}  // namespace quire::app
