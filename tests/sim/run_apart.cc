#include "tests/sim/run_apart.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "core/base/check.h"

namespace quire::sim {
namespace {

constexpr unsigned kHangSeconds = 10;  // a schedule takes a millisecond or two; under a sanitizer fifty
constexpr auto kShrinkTime = std::chrono::seconds(60);

// One child: what it writes to stderr, and how it ended.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    std::fflush(nullptr);
    pid_ = fork();
    CHECK_GE(pid_, 0);
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      work();
      std::fflush(nullptr);
      _exit(0);
    }
    close(ends[1]);
    said_fd_ = ends[0];
  }
  // True when it ended well.
  bool wait() {
    char part[4096];
    for (ssize_t got; (got = read(said_fd_, part, sizeof part)) > 0 || (got < 0 && errno == EINTR);) {
      if (got > 0) said.append(part, static_cast<std::size_t>(got));
    }
    close(said_fd_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    if (WIFSIGNALED(status) && said.empty()) said = "signal " + std::to_string(WTERMSIG(status)) + " (14: it hangs)";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::string said;

 private:
  pid_t pid_ = 0;
  int said_fd_ = -1;
};

// Memory that a child and its parent both see.
struct Progress {
  std::uint64_t seed = 0;
  Counts counts;
};
struct SharedProgress {
  SharedProgress() {
    void* const at = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_NE(at, MAP_FAILED);
    progress = new (at) Progress;
  }
  ~SharedProgress() { munmap(progress, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* progress = nullptr;
};

void add(Counts& sum, const Counts& more) {
  // All fields are of one type: see Counts.
  auto* const to = reinterpret_cast<std::uint64_t*>(&sum);
  const auto* const from = reinterpret_cast<const std::uint64_t*>(&more);
  for (std::size_t i = 0; i < sizeof(Counts) / sizeof(std::uint64_t); ++i) to[i] += from[i];
}

// How much there is in a schedule: shrinking only ever goes down.
template <typename Record>
long weight(const Record& record, std::span<const Field<Record>> fields) {
  const Record defaults;
  long sum = 0;
  for (const auto& field : fields) {
    const int value = record.*field.member;
    const int standard = defaults.*field.member;
    if (value != standard) sum += 10 + std::abs(static_cast<long>(value) - standard);
  }
  return sum;
}
long weight(const Scenario& scenario) {
  long sum = weight<World>(scenario.world, world_fields());
  for (const Arrival& one : scenario.arrivals) sum += 500 + weight<Arrival>(one, arrival_fields());
  return sum;
}

// Without arrival i. Who began with its tokens begins with those of its own stem.
Scenario without(Scenario scenario, std::size_t i) {
  scenario.arrivals.erase(scenario.arrivals.begin() + static_cast<std::ptrdiff_t>(i));
  for (Arrival& one : scenario.arrivals) {
    if (one.from == static_cast<int>(i)) one.from = -1;
    if (one.from > static_cast<int>(i)) --one.from;
  }
  return scenario;
}

template <typename Record>
void smaller(const Scenario& scenario, Record& (*record_of)(Scenario&, std::size_t), std::size_t i,
             std::span<const Field<Record>> fields, std::vector<Scenario>& out) {
  for (const auto& field : fields) {
    Scenario copy = scenario;
    const int value = record_of(copy, i).*field.member;
    const int standard = Record{}.*field.member;
    if (value == standard) continue;
    const int middle = standard + (value - standard) / 2;
    for (const int other : {standard, middle, value > standard ? value - 1 : value + 1}) {
      record_of(copy, i).*field.member = other;
      out.push_back(copy);
    }
  }
}

std::vector<Scenario> smaller(const Scenario& scenario) {
  std::vector<Scenario> out;
  for (std::size_t i = 0; i < scenario.arrivals.size(); ++i) out.push_back(without(scenario, i));
  for (std::size_t i = 0; i < scenario.arrivals.size(); ++i) {
    smaller<Arrival>(
        scenario, +[](Scenario& s, std::size_t at) -> Arrival& { return s.arrivals[at]; }, i, arrival_fields(), out);
  }
  smaller<World>(
      scenario, +[](Scenario& s, std::size_t) -> World& { return s.world; }, 0, world_fields(), out);
  return out;
}

}  // namespace

std::optional<std::string> run_apart(const Scenario& scenario) {
  Child child([&] {
    alarm(kHangSeconds);
    Counts counts;
    run(scenario, counts);
  });
  if (child.wait()) return std::nullopt;
  return child.said;
}

int num_processes() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

std::optional<Failure> run_seeds(std::uint64_t first, std::uint64_t count, int processes, Counts& counts) {
  std::vector<SharedProgress> shared(static_cast<std::size_t>(processes));
  std::vector<Child> children;
  for (int i = 0; i < processes; ++i) {
    Progress& progress = *shared[static_cast<std::size_t>(i)].progress;
    children.emplace_back([&progress, first, count, processes, i] {
      for (std::uint64_t seed = first + static_cast<std::uint64_t>(i); seed < first + count;
           seed += static_cast<std::uint64_t>(processes)) {
        progress.seed = seed;
        alarm(kHangSeconds);
        run(random_scenario(seed), progress.counts);
      }
    });
  }
  std::optional<Failure> failure;
  for (int i = 0; i < processes; ++i) {
    Child& child = children[static_cast<std::size_t>(i)];
    const bool well = child.wait();
    const Progress& progress = *shared[static_cast<std::size_t>(i)].progress;
    add(counts, progress.counts);
    if (!well && !failure) failure = Failure{random_scenario(progress.seed), progress.seed, child.said};
  }
  return failure;
}

Failure shrink(Failure failure) {
  const auto until = std::chrono::steady_clock::now() + kShrinkTime;
  for (bool better = true; better;) {
    better = false;
    for (const Scenario& raw : smaller(failure.scenario)) {
      const Scenario candidate = valid(raw);
      if (weight(candidate) >= weight(failure.scenario)) continue;
      if (std::chrono::steady_clock::now() > until) return failure;
      if (auto message = run_apart(candidate)) {
        failure = {candidate, failure.seed, *message};
        better = true;
        break;
      }
    }
  }
  return failure;
}

std::string report(const Failure& shrunk) {
  return "seed " + std::to_string(shrunk.seed) + ", shrunk: " + shrunk.message + "sim_test --replay '" +
         to_text(shrunk.scenario) + "'\n";
}

}  // namespace quire::sim
