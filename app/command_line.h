// Parser of the command line: the command, its own options, and a layer of settings.
// Thread  main.
// Fails   every problem is collected; unknown flags name the nearest known one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/config/config.h"

namespace quire::app {

enum class Command : std::uint8_t {
  kPrint,
  kServe,
  kGenerate,
  kChat,
  kBench,
  kInspect,
  kPs,
  kStop,
  kDoctor,
  kPull,
  kList,
  kRemove,
  kQuantize,
  kBuildDatastore,
  kKey
};

struct CommandLine {
  Command command = Command::kPrint;
  std::string text;  // of kPrint, for standard output: help, version or a generated page
  Layer flags;
  std::vector<std::string> notes;
  ServeOptions serve;
  GenerateOptions generate;
  ChatOptions chat;
  InspectOptions inspect;
  OperateOptions operate;  // ps, stop
  DoctorOptions doctor;
  ListOptions list;
  RemoveOptions remove;
  std::vector<std::string> bench_args;  // the words after `quire bench`, as typed
  QuantizeOptions quantize;
  BuildDatastoreOptions build_datastore;
  KeyOptions key;
};

// `args`: without the program's name. `columns`: of the pages of help.
CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems, std::size_t columns = 80);

}  // namespace quire::app
