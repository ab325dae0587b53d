#include "app/doctor/system_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace quire::app::doctor::system_text_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(InstructionSets, AreThoseThatKernelsCouldUse) {
  EXPECT_THAT(
      instruction_sets_in("processor\t: 0\nmodel name\t: AMD EPYC 9B14\n"
                          "flags\t\t: fpu sse4_2 fma avx f16c avx2 avx512f avx512_bf16 avx512_vnni\nbogomips\t: 5200\n"
                          "processor\t: 1\nflags\t\t: fpu\n"),
      ElementsAre("avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16"));
  EXPECT_THAT(instruction_sets_in("processor\t: 0\nFeatures\t: fp asimd evtstrm sve\n"), ElementsAre("asimd", "sve"));
  EXPECT_THAT(instruction_sets_in("flags\t: avx20 xavx\n"), IsEmpty());
  EXPECT_THAT(instruction_sets_in(""), IsEmpty());
}

TEST(Meminfo, IsReadInBytes) {
  const std::string text =
      "MemTotal:       65842192 kB\nMemFree:         1000 kB\nMemAvailable:   42000000 kB\nSwapTotal:  0 kB\n";
  EXPECT_EQ(bytes_in(text, "MemTotal"), 65842192ull * 1024);
  EXPECT_EQ(bytes_in(text, "MemAvailable"), 42000000ull * 1024);
  EXPECT_EQ(bytes_in(text, "SwapTotal"), 0u);
  EXPECT_FALSE(bytes_in(text, "Mem"));
  EXPECT_FALSE(bytes_in(text, "SwapFree"));
  EXPECT_FALSE(bytes_in("MemTotal: none\n", "MemTotal"));
}

TEST(Setting, IsTheWordInBrackets) {
  EXPECT_EQ(chosen_in("always [madvise] never\n"), "madvise");
  EXPECT_EQ(chosen_in("[always] madvise never\n"), "always");
  EXPECT_EQ(chosen_in("always madvise never"), "");
  EXPECT_EQ(chosen_in("]["), "");
  EXPECT_EQ(chosen_in(""), "");
}

TEST(NumberList, HasRangesAndSingleNumbers) {
  EXPECT_THAT(numbers_in("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(numbers_in("0\n"), ElementsAre(0));
  for (const char* wrong : {"", "3-1", "a", "1-", "-1", "0-4294967295"})
    EXPECT_THAT(numbers_in(wrong), IsEmpty()) << wrong;
}

TEST(Nodes, AreThoseWithUsableCpus) {
  std::map<std::string, std::string> files = {{"/sys/devices/system/node/online", "0-2\n"},
                                              {"/sys/devices/system/node/node0/cpulist", "0-3,8-11\n"},
                                              {"/sys/devices/system/node/node1/cpulist", "4-7\n"},
                                              {"/sys/devices/system/node/node2/cpulist", "\n"}};  // memory alone
  const ReadText read = [&files](const std::string& path) { return files[path]; };
  EXPECT_THAT(node_cpus(read, {0, 1, 4, 9}), ElementsAre(ElementsAre(0, 1, 9), ElementsAre(4)));
  EXPECT_THAT(node_cpus(read, {5, 6}), ElementsAre(ElementsAre(5, 6)));
  files.clear();
  EXPECT_THAT(node_cpus(read, {0}), IsEmpty()) << "a kernel without NUMA";
}

TEST(Load, IsThatOfTheLastMinute) {
  EXPECT_EQ(load_in("1.25 0.80 0.50 2/345 6789\n"), 1.25);
  EXPECT_FALSE(load_in(""));
}

TEST(Driver, IsTheVersionOfNvidias) {
  EXPECT_EQ(driver_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
                      "GCC version:  gcc version 12.2.0\n"),
            "535.104.05");
  EXPECT_EQ(driver_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n"),
            "550.54.14");
  EXPECT_EQ(driver_in(""), "");
}

TEST(Listeners, AreTheSocketsThatListenOnThePort) {
  // 0x1F40 is 8000. 0A: listening, 01: a connection.
  const std::string text =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0 100 0 0 "
      "10\n"
      "   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 31338 1 0 20 4 30 "
      "10\n"
      "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31339 1 0 100 0 0 "
      "10\n"
      "   3: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 31340 1\n";
  EXPECT_THAT(listeners_in(text, 8000), ElementsAre(31337, 31340));
  EXPECT_THAT(listeners_in(text, 22), ElementsAre(31339));
  EXPECT_THAT(listeners_in(text, 8001), IsEmpty());
  EXPECT_THAT(listeners_in("nonsense\n:\n", 8000), IsEmpty());
}

Proxies proxies_of(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return proxies_in(environment.data());
}

TEST(Proxies, AreReadWithoutTheirPasswords) {
  const Proxies proxies = proxies_of({"PATH=/bin", "http_proxy=http://user:p@ss@proxy:3128/", "HTTPS_PROXY=proxy:3129",
                                      "ALL_PROXY=", "no_proxy=localhost,.corp"});
  EXPECT_THAT(proxies.variables,
              UnorderedElementsAre(Pair("http_proxy", "http://proxy:3128/"), Pair("HTTPS_PROXY", "proxy:3129")));
  EXPECT_EQ(proxies.excepted, "localhost,.corp");
}

TEST(Proxies, OfHttpAreTheOnesThatClientsHereWouldAsk) {
  EXPECT_TRUE(proxies_of({"http_proxy=http://p"}).has_http());
  EXPECT_TRUE(proxies_of({"ALL_PROXY=http://p"}).has_http());
  EXPECT_FALSE(proxies_of({"https_proxy=http://p"}).has_http());
  EXPECT_FALSE(proxies_of({"xhttp_proxy=http://p"}).has_http());
  for (const char* excepting : {"no_proxy=localhost", "NO_PROXY=a, 127.0.0.1 ,b", "no_proxy=*"}) {
    EXPECT_TRUE(proxies_of({excepting}).excepts_loopback()) << excepting;
  }
  for (const char* other : {"no_proxy=.corp", "no_proxy=notlocalhost", "PATH=/bin"}) {
    EXPECT_FALSE(proxies_of({other}).excepts_loopback()) << other;
  }
}

}  // namespace
}  // namespace quire::app::doctor::system_text_test
