// The state of a download: written by its workers, read by a display.
// Owner   the caller of pull(); outlives it.
// Thread  any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace quire::hub {

class Progress {
 public:
  enum class State : std::uint8_t { kWaiting, kRunning, kDone };
  struct File {
    std::string path;
    std::uint64_t size = 0;
    std::uint64_t on_disk = 0;  // bytes, those of an earlier try included
    State state = State::kWaiting;
  };
  struct View {
    std::vector<File> files;
    std::uint64_t on_disk = 0;
    std::uint64_t size = 0;
    std::uint64_t received = 0;  // bytes that came over the network since the start

    double fraction() const {  // 0..1
      return size == 0 ? 0.0 : std::min(1.0, static_cast<double>(on_disk) / static_cast<double>(size));
    }
  };

  // Returns the file's index. Files that are whole on disk are added with all their bytes.
  std::size_t add(std::string path, std::uint64_t size, std::uint64_t on_disk);
  // Bytes of files that are not added yet, as known so far.
  void expect(std::uint64_t bytes);
  void set(std::size_t index, State state, std::uint64_t on_disk);
  void receive(std::size_t index, std::uint64_t bytes);
  View view() const;

 private:
  mutable std::mutex mutex_;
  std::vector<File> files_;
  std::uint64_t expected_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace quire::hub
