#include "hub/progress.h"

#include <utility>

namespace quire::hub {

std::size_t Progress::add(std::string path, std::uint64_t size, std::uint64_t on_disk) {
  const std::scoped_lock lock(mutex_);
  files_.push_back({std::move(path), size, on_disk, on_disk == size ? State::kDone : State::kWaiting});
  return files_.size() - 1;
}

void Progress::expect(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  expected_ = bytes;
}

void Progress::set(std::size_t index, State state, std::uint64_t on_disk) {
  const std::scoped_lock lock(mutex_);
  files_[index].state = state;
  files_[index].on_disk = on_disk;
}

void Progress::receive(std::size_t index, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  files_[index].on_disk += bytes;
  received_ += bytes;
}

Progress::View Progress::view() const {
  const std::scoped_lock lock(mutex_);
  View view{files_, 0, expected_, received_};
  for (const File& file : files_) {
    view.on_disk += file.on_disk;
    view.size += file.size;
  }
  return view;
}

}  // namespace quire::hub
