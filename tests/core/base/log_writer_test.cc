#include "core/base/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/log.h"

namespace quire {
namespace {

using namespace std::chrono_literals;

// A pipe that nobody reads until the test does.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int in() const { return ends_[1]; }
  void close_reader() { close_end(0); }
  void close_writer() { close_end(1); }
  // Not a byte more goes in.
  std::size_t fill() {
    set_blocking(false);
    const std::string page(4096, '.');
    std::size_t sum = 0;
    for (ssize_t bytes = 0; (bytes = write(in(), page.data(), page.size())) > 0;)
      sum += static_cast<std::size_t>(bytes);
    set_blocking(true);
    return sum;
  }
  std::string read_some(std::size_t most = 65536) {
    std::string text(most, '\0');
    const ssize_t bytes = read(ends_[0], text.data(), text.size());
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
  }
  std::string read_all() {
    std::string all;
    for (std::string part; !(part = read_some()).empty();) all += part;
    return all;
  }

 private:
  void close_end(int i) {
    if (ends_[i] >= 0) close(ends_[i]);
    ends_[i] = -1;
  }
  void set_blocking(bool blocking) { fcntl(in(), F_SETFL, blocking ? 0 : O_NONBLOCK); }
  int ends_[2] = {-1, -1};
};

std::string dropped(std::uint64_t lines) { return "dropped " + std::to_string(lines) + "\n"; }
// Of ten bytes.
std::string line(int i) {
  std::string digits = std::to_string(i);
  return "line " + std::string(4 - digits.size(), '0') + digits + "\n";
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

TEST(LogWriter, WritesLinesInOrderAndAllOfThemBeforeItEnds) {
  Pipe pipe;
  std::string expected;
  {
    LogWriter writer(pipe.in(), 1 << 20, dropped);
    for (int i = 0; i < 1000; ++i) {
      writer.write(line(i));
      expected += line(i);
    }
  }
  pipe.close_writer();
  EXPECT_EQ(pipe.read_all(), expected);
}

TEST(LogWriter, ALineLongerThanAPipeTakesAtOnceComesWhole) {
  Pipe pipe;
  const std::string longest(300'000, 'x');
  LogWriter writer(pipe.in(), 1 << 20, dropped);
  writer.write(longest);
  std::string all;
  while (all.size() < longest.size()) all += pipe.read_some();
  EXPECT_EQ(all, longest);
}

// Ten bytes a line: what waits is as many lines as fit, the newest, and whoever logs never waits.
TEST(LogWriter, AReaderThatIsStuckHoldsUpNobodyAndTheOldestLinesAreMissing) {
  for (const int num_lines : {9, 10, 11, 1000}) {
    SCOPED_TRACE(num_lines);
    Pipe pipe;
    const std::size_t filled = pipe.fill();
    std::string rest;
    {
      LogWriter writer(pipe.in(), 100, dropped);
      for (int i = 0; i < num_lines; ++i) writer.write(line(i));
      EXPECT_EQ(writer.num_dropped(), static_cast<std::uint64_t>(std::max(0, num_lines - 10)));
      std::size_t left = filled;
      while (left > 0) left -= pipe.read_some(left).size();
      writer.flush(20s);
    }
    pipe.close_writer();
    int num_told = 0;
    int num_missing = 0;
    std::string last;
    for (const std::string& one : lines_of(pipe.read_all())) {
      last = one;
      if (one.starts_with("dropped ")) {
        num_missing += std::stoi(one.substr(8));
      } else {
        ++num_told;
      }
    }
    EXPECT_EQ(num_told, std::min(num_lines, 10));
    EXPECT_EQ(num_missing, std::max(0, num_lines - 10)) << "where they are missing, once or in parts";
    EXPECT_EQ(last, line(num_lines - 1));
  }
}

TEST(LogWriter, ALineThatHasNoRoomAtAllIsMissing) {
  for (const std::size_t size : {99u, 100u, 101u}) {
    Pipe pipe;
    LogWriter writer(pipe.in(), 100, dropped);
    writer.write(std::string(size, 'x'));
    EXPECT_EQ(writer.num_dropped(), size > 100 ? 1u : 0u) << size;
  }
}

TEST(LogWriter, ItsEndWaitsForAStuckReaderNoLongerThanItMay) {
  Pipe pipe;
  pipe.fill();
  const auto begun = std::chrono::steady_clock::now();
  {
    LogWriter writer(pipe.in(), 100, dropped);
    writer.write(line(1));
    writer.flush(1ms);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, LogWriter::kPatience);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, LogWriter::kPatience + 10s);
}

TEST(LogThread, SaysInTheFormOfTheLogWhatItWroteAndCountsNothingWhereNothingIsMissing) {
  const std::uint64_t before = log_lines_dropped();
  ::testing::internal::CaptureStderr();
  {
    const LogThread thread;
    log_info("first", "x={}", 1);
    flush_log();
    log_info("second", "x={}", 2);
  }
  log_info("third", "x={}", 3);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_LT(text.find(" info first x=1\n"), text.find(" info second x=2\n"));
  EXPECT_LT(text.find(" info second x=2\n"), text.find(" info third x=3\n"));
  EXPECT_NE(text.find(" info third x=3\n"), std::string::npos);
  EXPECT_EQ(log_lines_dropped(), before);
}

}  // namespace
}  // namespace quire
