// `quire bench` replaces this process by the program quire-bench, which holds all benchmarks: a build of quire compiles
// none of them.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/commands/commands.h"
#include "core/base/start_error.h"

namespace quire::app {

int bench(const std::vector<std::string>& args) {
  const std::filesystem::path directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> words{(directory / "quire-bench").string()};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  if (errno == ENOENT) {
    throw StartError(fmt::format(
        "quire bench runs the program quire-bench, which is not in {}; build it: cmake --build build/release --target "
        "quire-bench",
        directory.string()));
  }
  throw StartError(fmt::format("quire bench cannot run {}: {}", words[0], std::strerror(errno)));
}

}  // namespace quire::app
