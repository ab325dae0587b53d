#include "hub/blob_download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"
#include "hub/digest.h"

namespace quire::hub {
namespace {

namespace fs = std::filesystem;

std::string system_text(const fs::path& path) {
  const std::string text = path.string() + ": " + std::generic_category().message(errno);
  return errno == ENOSPC || errno == EDQUOT
             ? text +
                   "; free some space and start again: what has arrived is kept. --download-dir or HF_HUB_CACHE "
                   "chooses another disk"
             : text;
}

// The part's file has been renamed or removed by another process, although this one has its lock: a file system whose
// locks do not reach other machines.
struct PartLost {};

// The file that grows. Its bytes so far have gone through the digest.
class PartFile {
 public:
  PartFile(fs::path path, const RepoFile& file) : path_(std::move(path)), size_(file.size), digest_(file.blob, size_) {
    make_directories(path_.parent_path());
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) throw StartError(system_text(path_));
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() { ::close(file_); }

  std::uint64_t length() const { return length_; }
  const fs::path& path() const { return path_; }

  // Reads what an earlier try left; more than the whole is none of it.
  void resume(const std::stop_token& stop) {
    struct stat found {};
    if (::fstat(file_, &found) != 0) throw StartError(system_text(path_));
    if (static_cast<std::uint64_t>(found.st_size) > size_) return begin_anew();
    std::array<std::byte, 1 << 18> piece;
    while (!stop.stop_requested()) {
      const ssize_t count = ::pread(file_, piece.data(), piece.size(), static_cast<off_t>(length_));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw StartError(system_text(path_));
      if (count == 0) return;
      digest_.add(std::span(piece).first(static_cast<std::size_t>(count)));
      length_ += static_cast<std::uint64_t>(count);
    }
  }

  void begin_anew() {
    expect_own();
    if (::ftruncate(file_, 0) != 0) throw StartError(system_text(path_));
    length_ = 0;
    digest_.restart();
  }

  // False: the disk takes no more; fault() says why.
  bool append(std::span<const std::byte> bytes) {
    std::size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t count =
          ::pwrite(file_, bytes.data() + written, bytes.size() - written, static_cast<off_t>(length_ + written));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        fault_ = system_text(path_);
        return false;
      }
      written += static_cast<std::size_t>(count);
    }
    digest_.add(bytes);
    length_ += bytes.size();
    return true;
  }

  const std::string& fault() const { return fault_; }
  bool is_right() { return digest_.matches(); }

  void finish(const fs::path& blob) {
    std::error_code error;
    if (::fdatasync(file_) != 0) throw StartError(system_text(path_));
    expect_own();
    fs::rename(path_, blob, error);
    if (error) throw StartError(fmt::format("{}: {}", blob.string(), error.message()));
  }

 private:
  void expect_own() const {
    struct stat own {};
    struct stat named {};
    const bool same = ::fstat(file_, &own) == 0 && ::stat(path_.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
                      own.st_dev == named.st_dev;
    if (!same) throw PartLost();
  }

  const fs::path path_;
  const std::uint64_t size_;
  int file_ = -1;
  std::uint64_t length_ = 0;
  BlobDigest digest_;
  std::string fault_;
};

// Takes the body of an answer to the end of the part.
class PartSink final : public Sink {
 public:
  PartSink(PartFile& part, const RepoFile& file, Progress& progress, std::size_t index)
      : part_(part), file_(file), progress_(progress), index_(index) {}

  bool begin(std::uint64_t offset) override {
    if (offset == part_.length()) return true;
    if (offset != 0)
      return refuse(fmt::format("the server sent bytes from {} on instead of {}", offset, part_.length()));
    part_.begin_anew();  // it knows no ranges
    progress_.set(index_, Progress::State::kRunning, 0);
    return true;
  }

  bool take(std::span<const std::byte> piece) override {
    if (piece.size() > file_.size - part_.length()) {
      return refuse(fmt::format("the server sent more than {} bytes", file_.size));
    }
    if (!part_.append(piece)) {
      is_of_disk_ = true;
      return refuse(part_.fault());
    }
    progress_.receive(index_, piece.size());
    return true;
  }

  const std::string& fault() const { return fault_; }
  bool is_of_disk() const { return is_of_disk_; }

 private:
  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  PartFile& part_;
  const RepoFile& file_;
  Progress& progress_;
  const std::size_t index_;
  std::string fault_;
  bool is_of_disk_ = false;
};

fs::path part_of(const RepoCache& cache, const RepoFile& file) {
  return fs::path(cache.blob(file).string() + ".incomplete");
}

// For file systems without locks.
fs::path part_of_its_own(const RepoCache& cache, const RepoFile& file) {
  return fs::path(fmt::format("{}.{:08x}.incomplete", cache.blob(file).string(), std::random_device()()));
}

// Requests the rest until the part is whole.
std::optional<Failure> complete(PartFile& part, const BlobJob& job, const Settings& settings, Client& client,
                                Progress& progress, const std::stop_token& stop) {
  Retries retries(settings, stop, settings.max_attempts);
  std::uint64_t most = part.length();  // a server without ranges sends the same bytes again and again
  while (part.length() < job.file.size) {
    PartSink sink(part, job.file, progress, job.index);
    Got<Answer> got = client.fetch(job.name, job.commit, job.file, part.length(), sink);
    if (sink.is_of_disk()) return Failure{sink.fault()};
    if (!sink.fault().empty()) {
      got = Failure{fmt::format("{}: {}", log_safe(job.file.path), sink.fault()), true};
      part.begin_anew();
      progress.set(job.index, Progress::State::kRunning, 0);
    } else if (part.length() > most) {
      most = part.length();
      retries.begin_anew();
    }
    if (std::holds_alternative<Answer>(got)) {
      if (part.length() == job.file.size) break;
      got = Failure{fmt::format("{}: the answer ended after {} of {} bytes", log_safe(job.file.path), part.length(),
                                job.file.size),
                    true};
    }
    const Failure& failure = std::get<Failure>(got);
    if (failure.cancelled || !retries.again(failure)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> download(const BlobJob& job, const fs::path& path, const fs::path& blob,
                                const Settings& settings, Client& client, Progress& progress,
                                const std::stop_token& stop) {
  constexpr int kMaxWrong = 2;  // whole files with another hash
  PartFile part(path, job.file);
  part.resume(stop);
  for (int wrong = 0;; ++wrong) {
    progress.set(job.index, Progress::State::kRunning, part.length());
    const bool was_whole = part.length() == job.file.size;
    if (auto failure = complete(part, job, settings, client, progress, stop)) return failure;
    if (stop.stop_requested()) return Failure{.message = "interrupted", .cancelled = true};
    if (part.is_right()) break;
    part.begin_anew();
    if (was_whole && job.file.size > 0 && wrong == 0) continue;  // an earlier try's bytes
    if (wrong + 1 >= kMaxWrong) {
      return Failure{fmt::format(
          "{}: what arrives has another hash than {} says ({}…): something on the way changes it, or the mirror is "
          "damaged",
          log_safe(job.file.path), settings.endpoint, job.file.blob.substr(0, 12))};
    }
  }
  part.finish(blob);
  return std::nullopt;
}

}  // namespace

std::uint64_t bytes_of_earlier_try(const RepoCache& cache, const RepoFile& file) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(part_of(cache, file), error);
  return error || bytes > file.size ? 0 : bytes;
}

std::optional<Failure> download_blob(const BlobJob& job, bool is_locked, const RepoCache& cache,
                                     const Settings& settings, Client& client, Progress& progress,
                                     const std::stop_token& stop) {
  const auto run = [&](const fs::path& path) {
    return download(job, path, cache.blob(job.file), settings, client, progress, stop);
  };
  try {
    if (is_locked) return run(part_of(cache, job.file));
  } catch (const PartLost&) {
    if (cache.has_blob(job.file)) return std::nullopt;
  }
  const fs::path own = part_of_its_own(cache, job.file);
  std::optional<Failure> failure = run(own);
  std::error_code ignored;
  if (failure) fs::remove(own, ignored);
  return failure;
}

}  // namespace quire::hub
