#include "tests/sim/command_line.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "tests/sim/run_apart.h"

namespace quire::sim {

void print(const Counts& counts, double seconds) {
  std::printf("  %llu schedules in %.1f s: ", static_cast<unsigned long long>(counts.schedules), seconds);
  const std::pair<const char*, std::uint64_t> all[] = {
      {"turns", counts.iterations},
      {"sequences", counts.sequences},
      {"tokens", counts.tokens},
      {"rows", counts.rows},
      {"cached tokens", counts.cached_tokens},
      {"behind windows", counts.windowed_tokens},
      {"of several groups", counts.grouped},
      {"preemptions", counts.preemptions},
      {"overtakes", counts.overtakes},
      {"copies", counts.copies},
      {"blocks swapped in", counts.swaps_in},
      {"poisoned", counts.poisons},
      {"shared blocks", counts.shared_blocks},
      {"dropped blocks", counts.dropped_blocks},
      {"parked", counts.paused},
      {"cancelled", counts.cancelled},
      {"failed", counts.failed},
      {"beam searches", counts.beams},
      {"with rules", counts.ruled},
      {"scored tokens", counts.scored},
      {"pooled prompts", counts.pooled},
      {"with a grammar", counts.governed},
      {"jumped", counts.jumped},
      {"completed by it", counts.complete},
      {"pinned prefixes", counts.pinned},
      {"broken devices", counts.broken},
      {"blocks loaded", counts.loaded_blocks},
      {"steps ahead", counts.ahead},
      {"rows fed", counts.fed},
  };
  const char* separator = "";
  for (const auto& [name, count] : all) {
    std::printf("%s%llu %s", separator, static_cast<unsigned long long>(count), name);
    separator = ", ";
  }
  std::printf("\n");
}

namespace {

int hunt(std::uint64_t first, std::uint64_t count) {
  Counts counts;
  const auto began = std::chrono::steady_clock::now();
  const auto failure = run_seeds(first, count, num_processes(), counts);
  print(counts, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  if (!failure) return 0;
  std::printf("seed %llu: %s", static_cast<unsigned long long>(failure->seed), failure->message.c_str());
  std::fflush(stdout);
  std::printf("%s", report(shrink(*failure)).c_str());
  return 1;
}

}  // namespace

std::optional<int> run_command(int argc, char** argv) {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
    if (is("--replay")) {
      Counts counts;
      run(valid(parse(argv[i + 1])), counts);
      print(counts, 0.0);
      return 0;
    }
    if (is("--hunt")) count = std::stoull(argv[i + 1]);
    if (is("--first")) first = std::stoull(argv[i + 1]);
  }
  if (count > 0) return hunt(first, count);
  return std::nullopt;
}

}  // namespace quire::sim
