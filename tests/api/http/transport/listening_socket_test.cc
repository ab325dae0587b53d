#include "api/http/transport/listening_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "core/base/start_error.h"
#include "tests/support/temporary_folder.h"

namespace quire::api::http {
namespace {

using boost::asio::local::stream_protocol;

class UnixSocketTest : public ::testing::Test {
 protected:
  std::unique_ptr<ListeningSocket> socket(const std::string& path) {
    return std::make_unique<ListeningSocket>(context_, Place{"", 0, "--host", "--port", path});
  }
  std::unique_ptr<ListeningSocket> bound() {
    auto made = socket(path_);
    EXPECT_EQ(made->bind(), 0);
    return made;
  }
  bool somebody_listens() {
    stream_protocol::socket visitor(context_);
    boost::system::error_code error;
    visitor.connect(stream_protocol::endpoint(path_), error);
    return !error;
  }
  static std::string problem_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const StartError& error) {
      return error.what();
    }
    return "none";
  }

  boost::asio::io_context context_;
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.path_of("quire.sock");
};

TEST_F(UnixSocketTest, IsForItsOwnerAndGroupWhateverTheMask) {
  for (const mode_t mask : {mode_t{0}, mode_t{022}, mode_t{0777}}) {
    const mode_t before = ::umask(mask);
    const auto made = bound();
    ::umask(before);
    struct stat there {};
    ASSERT_EQ(::stat(path_.c_str(), &there), 0);
    EXPECT_EQ(there.st_mode & 07777u, 0660u) << mask;
    EXPECT_TRUE(somebody_listens());
  }
}

TEST_F(UnixSocketTest, GoesWithWhoeverMadeIt) {
  auto made = bound();
  made->close();
  EXPECT_FALSE(std::filesystem::exists(path_));
  made = bound();
  made.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, IsNotTakenFromWhoListens) {
  const auto first = bound();
  const std::string problem = problem_of([this] { socket(path_)->bind(); });
  EXPECT_NE(problem.find("a process listens there"), std::string::npos) << problem;
  EXPECT_NE(problem.find(path_), std::string::npos);
  EXPECT_TRUE(somebody_listens()) << "and the file is still there";
}

TEST_F(UnixSocketTest, ReplacesWhatADeadServerLeft) {
  { stream_protocol::acceptor left(context_, stream_protocol::endpoint(path_)); }
  ASSERT_TRUE(std::filesystem::is_socket(path_));
  ASSERT_FALSE(somebody_listens());
  const auto made = bound();
  EXPECT_TRUE(somebody_listens());
}

TEST_F(UnixSocketTest, TouchesNothingThatIsNoSocket) {
  std::ofstream(path_) << "precious";
  EXPECT_NE(problem_of([this] { socket(path_)->bind(); }).find("not a socket"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(UnixSocketTest, LeavesAFileThatSomebodyElsePutThere) {
  const auto first = bound();
  std::filesystem::remove(path_);
  const auto second = bound();
  first->close();
  EXPECT_TRUE(somebody_listens()) << "the second one's";
}

TEST_F(UnixSocketTest, TakesAPathOf107BytesAndNotOneMore) {
  const std::string folder = folder_.path() + "/";
  ASSERT_LT(folder.size(), 100u);
  for (const std::size_t bytes : {106u, 107u, 108u}) {
    const std::string path = folder + std::string(bytes - folder.size(), 's');
    const std::string problem = problem_of([&] { socket(path)->bind(); });
    if (bytes <= 107) {
      EXPECT_EQ(problem, "none") << bytes;
    } else {
      EXPECT_NE(problem.find("at most 107 bytes"), std::string::npos) << problem;
    }
  }
}

TEST_F(UnixSocketTest, SaysWhyAFileCannotBeMade) {
  const std::string path = folder_.path_of("no-such-directory/quire.sock");
  const std::string problem = problem_of([&] { socket(path)->bind(); });
  EXPECT_NE(problem.find("--uds " + path), std::string::npos) << problem;
}

}  // namespace
}  // namespace quire::api::http
