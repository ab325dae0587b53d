#include "app/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "app/doctor/doctor_report.h"

namespace quire::app::doctor::checks_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

using Files = std::map<std::string, std::string>;

std::string flags(const std::string& more) {
  return "processor\t: 0\nflags\t\t: fpu sse2 avx avx2 fma f16c " + more + "\n";
}

// A workstation: one processor, nothing in the way.
Files workstation() {
  return {{"/proc/cpuinfo", flags("")},
          {"/sys/devices/system/cpu/online", "0-15\n"},
          {"/proc/loadavg", "0.10 0.20 0.30 1/500 1234\n"},
          {"/sys/devices/system/node/online", "0\n"},
          {"/sys/devices/system/node/node0/cpulist", "0-15\n"},
          {"/proc/meminfo",
           "MemTotal:       65842192 kB\nMemAvailable:   60000000 kB\nSwapTotal:       8388608 kB\n"
           "SwapFree:        8388608 kB\n"},
          {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
          {"/proc/self/status", "Name:\tquire\nTHP_enabled:\t1\n"}};
}

// A server with two processors.
Files server() {
  Files files = workstation();
  files["/proc/cpuinfo"] = flags("avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16");
  files["/sys/devices/system/cpu/online"] = "0-127\n";
  files["/sys/devices/system/node/online"] = "0-1\n";
  files["/sys/devices/system/node/node0/cpulist"] = "0-63\n";
  files["/sys/devices/system/node/node1/cpulist"] = "64-127\n";
  files["/sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never\n";
  return files;
}

// A small virtual machine that is short of memory.
Files small_guest() {
  return {{"/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2\n"},
          {"/sys/devices/system/cpu/online", "0\n"},
          {"/proc/loadavg", "2.00 1.00 1.00 3/90 99\n"},
          {"/proc/meminfo",
           "MemTotal:        2000000 kB\nMemAvailable:     300000 kB\nSwapTotal:       1000000 kB\n"
           "SwapFree:         500000 kB\n"},
          {"/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"}};
}

Facts facts_of(const Files& files, std::uint32_t num_cpus) {
  const ReadText read = [&files](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::string() : found->second;
  };
  std::vector<std::uint32_t> cpus(num_cpus);
  std::iota(cpus.begin(), cpus.end(), 0u);
  Facts facts;
  facts.cpu = cpu_facts(read, std::move(cpus));
  facts.cpu.name = "A processor";
  facts.cpu.kernels = {"scalar", "avx2"};
  facts.cpu.isa = "auto";
  facts.cpu.threads = num_cpus;
  facts.memory = memory_facts(read);
  facts.memory.read_bytes_per_s = 40e9;
  facts.files = {1024, 1048576, 16512};
  facts.ports = {{.host = "127.0.0.1", .port = 8000}};
  facts.cache = {"/srv/models", true, 100 * kGiB};
  return facts;
}

Check check_of(const Facts& facts, const std::string& name, const std::optional<ModelFacts>& model = {}) {
  for (Check& check : checks_of(facts, model)) {
    if (check.name == name) return std::move(check);
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

void expect(const Check& check, Verdict verdict, const std::string& text, const std::string& advice = "") {
  EXPECT_STREQ(name_of(check.verdict), name_of(verdict)) << check.name << ": " << check.text;
  EXPECT_THAT(check.text, HasSubstr(text));
  EXPECT_THAT(check.advice, HasSubstr(advice));
}

TEST(Checks, AWorkstationIsWell) {
  const std::vector<Check> checks = checks_of(facts_of(workstation(), 16), {});
  for (const Check& check : checks) {
    expect(check, Verdict::kOk, "");
    EXPECT_THAT(check.advice, IsEmpty()) << check.name;
    EXPECT_FALSE(check.facts.empty()) << check.name;
  }
  EXPECT_EQ(worst_of(checks), Verdict::kOk);
}

TEST(Checks, EveryVerdictButOkComesWithAdvice) {
  Facts facts = facts_of(small_guest(), 1);
  facts.cpu.kernels = {"scalar"};
  facts.memory.read_bytes_per_s = 2e9;
  facts.ports[0].error = EADDRINUSE;
  facts.files.hard = 1024;
  facts.cache.is_writable = false;
  facts.gpu.driver = "535.104.05";
  facts.proxies.variables = {{"http_proxy", "http://proxy:3128"}};
  const std::vector<Check> checks = checks_of(facts, {});
  for (const Check& check : checks) {
    EXPECT_EQ(check.advice.empty(), check.verdict == Verdict::kOk) << check.name;
    EXPECT_TRUE(check.advice.empty() || check.advice.ends_with('.')) << check.advice;
  }
  EXPECT_EQ(worst_of(checks), Verdict::kWrong);
}

TEST(Checks, CpusAreCountedWithinAffinityAndQuota) {
  Facts facts = facts_of(server(), 64);
  facts.cpu.quota = 4;
  facts.cpu.threads = 4;
  expect(check_of(facts, "cpu"), Verdict::kOk, "64 of 128 CPUs allowed, quota of 4 CPUs, 4 threads");
  facts.cpu.threads = 5;
  expect(check_of(facts, "cpu"), Verdict::kSlow, "5 threads", "on 4 CPUs: leave --threads out");
  facts.cpu.quota = 1;
  expect(check_of(facts, "cpu"), Verdict::kSlow, "quota of 1 CPU,", "share one CPU");
}

TEST(Checks, ALoadAboveHalfTheCpusIsTooMuch) {
  Facts facts = facts_of(workstation(), 16);
  facts.cpu.load = 8.0;
  expect(check_of(facts, "load"), Verdict::kOk, "8.00 tasks");
  facts.cpu.load = 8.1;
  expect(check_of(facts, "load"), Verdict::kSlow, "8.10 tasks", "Other programs");
  facts.cpu.load.reset();
  expect(check_of(facts, "load"), Verdict::kOk, "unknown");
}

TEST(Checks, KernelsAreTheFastestUnlessOthersAreAskedFor) {
  Facts facts = facts_of(server(), 64);
  facts.cpu.kernels = {"scalar", "avx2", "avx512", "avx512vnni", "avx512bf16"};
  expect(check_of(facts, "kernels"), Verdict::kOk, "avx512bf16 (--isa auto); the CPU has avx avx2");
  facts.cpu.isa = "avx2";
  expect(check_of(facts, "kernels"), Verdict::kSlow, "avx2 (--isa avx2)", "avx512bf16 kernels are faster");
  facts.cpu.kernels = {"scalar"};
  expect(check_of(facts, "kernels"), Verdict::kWrong, "avx2", "cannot run avx2");
  facts.cpu.isa = "auto";
  expect(check_of(facts, "kernels"), Verdict::kSlow, "scalar", "virtual machine");
}

TEST(Checks, NodesMatterIfThreadsRunOnSeveral) {
  expect(check_of(facts_of(server(), 128), "numa"), Verdict::kSlow, "2 nodes", "numactl");
  expect(check_of(facts_of(server(), 64), "numa"), Verdict::kOk, "1 node");
  expect(check_of(facts_of(small_guest(), 1), "numa"), Verdict::kOk, "1 node");
}

TEST(Checks, MemoryIsWhatTheSystemAndTheControlGroupLeave) {
  Facts facts = facts_of(workstation(), 16);
  facts.memory.total = 64 * kGiB;
  facts.memory.available = 50 * kGiB;
  expect(check_of(facts, "memory"), Verdict::kOk, "64.00 GiB, 50.00 GiB available");
  facts.memory.group_limit = 4 * kGiB;
  facts.memory.group_left = 2 * kGiB;
  expect(check_of(facts, "memory"), Verdict::kOk, "the control group allows 4.00 GiB, of which 2.00 GiB are left");
  facts.memory.group_left = 2 * kGiB - 1;
  expect(check_of(facts, "memory"), Verdict::kSlow, "", "2 GiB");
  facts.memory.group_left = kGiB / 2;
  expect(check_of(facts, "memory"), Verdict::kSlow, "", "2 GiB");
  facts.memory.group_left = kGiB / 2 - 1;
  expect(check_of(facts, "memory"), Verdict::kWrong, "", "0.5 GiB");
  expect(check_of(facts_of(small_guest(), 1), "memory"), Verdict::kWrong, "293.0 MiB available");
}

TEST(Checks, BandwidthLimitsTheTokensOfOneStream) {
  Facts facts = facts_of(workstation(), 16);
  facts.memory.read_bytes_per_s = 10e9;
  expect(check_of(facts, "bandwidth"), Verdict::kOk,
         "10.0 GB/s are read by 16 threads: with 1 GiB of weights one stream gets at most 9 tokens/s");
  facts.memory.read_bytes_per_s = 9.9e9;
  expect(check_of(facts, "bandwidth"), Verdict::kSlow, "9.9 GB/s", "20 GB/s");
  facts.memory.read_bytes_per_s.reset();
  expect(check_of(facts, "bandwidth"), Verdict::kOk, "not measured");
}

TEST(Checks, HugePagesAreUsedUnlessTheyAreSwitchedOff) {
  expect(check_of(facts_of(server(), 64), "huge pages"), Verdict::kOk,
         "always; weights and KV cache lie on pages of 2");
  expect(check_of(facts_of(workstation(), 16), "huge pages"), Verdict::kOk, "madvise; weights");
  expect(check_of(facts_of(small_guest(), 1), "huge pages"), Verdict::kSlow, "never", "echo madvise >");
  Files files = workstation();
  files["/proc/self/status"] = "Name:\tquire\nTHP_enabled:\t0\n";
  expect(check_of(facts_of(files, 16), "huge pages"), Verdict::kSlow, "madvise", "switched off for this process");
  files.erase("/sys/kernel/mm/transparent_hugepage/enabled");
  files.erase("/proc/self/status");
  expect(check_of(facts_of(files, 16), "huge pages"), Verdict::kOk, "unknown");
}

TEST(Checks, SwapMattersOnceItIsUsed) {
  expect(check_of(facts_of(workstation(), 16), "swap"), Verdict::kOk, "8.00 GiB, 0 B used");
  expect(check_of(facts_of(small_guest(), 1), "swap"), Verdict::kSlow, "488.3 MiB used", "swapped out");
  expect(check_of(facts_of({}, 1), "swap"), Verdict::kOk, "none");
}

TEST(Checks, AGpuIsUsedIfTheProgramCan) {
  Facts facts = facts_of(server(), 64);
  expect(check_of(facts, "gpu"), Verdict::kOk, "none; models run on the CPU (this program is built without CUDA)");
  facts.gpu.driver = "535.104.05";
  expect(check_of(facts, "gpu"), Verdict::kSlow, "driver 535.104.05", "cuda-release");
  facts.gpu.built_with_cuda = true;
  expect(check_of(facts, "gpu"), Verdict::kSlow, "driver 535.104.05", "--gpus all");
  facts.gpu.devices = {{"NVIDIA H200", "sm_90", 140 * kGiB}};
  expect(check_of(facts, "gpu"), Verdict::kOk, "NVIDIA H200 (sm_90), 140.00 GiB free; NVIDIA driver 535.104.05");
  facts.gpu.problem = "no code for sm_75";
  expect(check_of(facts, "gpu"), Verdict::kSlow, "H200", "no code for sm_75.");
}

TEST(Checks, OpenFilesAreEnoughForAllConnections) {
  Facts facts = facts_of(workstation(), 16);
  facts.files = {1024, 16512, 16512};
  expect(check_of(facts, "open files"), Verdict::kOk, "16512");
  facts.files.hard = 16511;
  expect(check_of(facts, "open files"), Verdict::kSlow, "16511", "ulimit");
  facts.files.hard = ~std::uint64_t{0};
  expect(check_of(facts, "open files"), Verdict::kOk, "unlimited");
}

TEST(Checks, ABusyPortIsNamedWithItsHolder) {
  Facts facts = facts_of(workstation(), 16);
  facts.ports[0].error = EADDRINUSE;
  expect(check_of(facts, "port 8000"), Verdict::kWrong, "in use by a process of another user", "--port");
  facts.ports[0].holder = "python3 (pid 4711)";
  expect(check_of(facts, "port 8000"), Verdict::kWrong, "in use by python3 (pid 4711)", "--port");
  facts.ports[0].asked = false;
  expect(check_of(facts, "port 8000"), Verdict::kOk, "in use by python3");
  facts.ports[0] = {.host = "127.0.0.1", .port = 80, .error = EACCES};
  expect(check_of(facts, "port 80"), Verdict::kWrong, "not permitted", "1024");
  facts.ports[0] = {.host = "192.0.2.1", .port = 8000, .error = EADDRNOTAVAIL};
  expect(check_of(facts, "port 8000"), Verdict::kWrong, "192.0.2.1", "--host");
}

TEST(Checks, TheModelCacheNeedsRoomAndPermission) {
  Facts facts = facts_of(workstation(), 16);
  facts.cache.free_bytes = kGiB;
  expect(check_of(facts, "model cache"), Verdict::kOk, "1.00 GiB free");
  facts.cache.free_bytes = kGiB - 1;
  expect(check_of(facts, "model cache"), Verdict::kWrong, "", "quire rm");
  facts.cache = {"/srv/hub", false, 100 * kGiB};
  expect(check_of(facts, "model cache"), Verdict::kWrong, "/srv/hub", "--download-dir");
}

TEST(Checks, AProxyMustLeaveThisMachineOut) {
  Facts facts = facts_of(workstation(), 16);
  facts.proxies.variables = {{"http_proxy", "http://proxy:3128"}};
  expect(check_of(facts, "proxies"), Verdict::kWrong, "http_proxy=http://proxy:3128", "NO_PROXY");
  facts.proxies.excepted = "localhost";
  expect(check_of(facts, "proxies"), Verdict::kOk, "http_proxy");
  facts.proxies = {{{"https_proxy", "http://proxy:3128"}}, ""};
  expect(check_of(facts, "proxies"), Verdict::kOk, "https_proxy");
}

TEST(Checks, AModelFitsOrDoesNot) {
  const Facts facts = facts_of(workstation(), 16);
  ModelFacts model{.name = "Qwen/Qwen3-0.6B",
                   .weight_bytes = 4 * kGiB,
                   .stream_bytes = 2 * kGiB,
                   .longest = 40960,
                   .free_bytes = 6 * kGiB,
                   .tokens_per_s = 12.34};
  expect(check_of(facts, "model", model), Verdict::kOk, "4.00 GiB of weights, about 12.3 tokens/s for one stream");
  model.free_bytes = 6 * kGiB - 1;
  expect(check_of(facts, "model", model), Verdict::kSlow, "", "One stream of 40960 tokens");
  model.free_bytes = 4 * kGiB;
  expect(check_of(facts, "model", model), Verdict::kWrong, "", "--quantize");
  model.problem = "no such directory";
  expect(check_of(facts, "model", model), Verdict::kWrong, "cannot be read", "no such directory");
}

TEST(Report, HasTheSameChecksAsTextAndAsJson) {
  const std::vector<Check> checks = checks_of(facts_of(small_guest(), 1), {});
  const std::string text = report_text(checks);
  const boost::json::object json = boost::json::parse(report_json(checks)).as_object();
  EXPECT_EQ(json.at("verdict"), "wrong");
  const boost::json::array& rows = json.at("checks").as_array();
  ASSERT_EQ(rows.size(), checks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const boost::json::object& row = rows[i].as_object();
    EXPECT_EQ(row.at("name"), boost::json::string(checks[i].name));
    EXPECT_EQ(row.at("advice").is_null(), checks[i].verdict == Verdict::kOk);
    EXPECT_EQ(row.at("facts").as_object(), checks[i].facts);
    EXPECT_THAT(text, HasSubstr(checks[i].text));
    EXPECT_THAT(text, HasSubstr(checks[i].advice));
  }
  EXPECT_THAT(text, HasSubstr(" 1 wrong\n"));
}

}  // namespace
}  // namespace quire::app::doctor::checks_test
