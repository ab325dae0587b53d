#include "gpu/steps.h"

#include "core/base/check.h"

namespace quire::gpu {

static_assert(sizeof(BlockId) == sizeof(std::uint32_t));

Packet::Packet(Device& device, const PacketSizes& most, std::uint32_t depth)
    : device_(device), most_(most), memory_(device, places_of(most).end, "what a step brings along") {
  for (std::uint32_t i = 0; i < depth; ++i) {
    slots_.push_back({PinnedMemory(device, memory_.bytes(), "what a step brings along"), device.make_event()});
  }
}

void Packet::begin(const PacketSizes& sizes) {
  CHECK_LE(sizes.rows, most_.rows);
  CHECK_LE(sizes.speakers, most_.speakers);
  CHECK_LE(sizes.kept_groups, most_.kept_groups);
  CHECK_LE(sizes.table_entries, most_.table_entries);
  slot_ = (slot_ + 1) % slots_.size();
  sizes_ = sizes;
  places_ = places_of(sizes);
  slots_[slot_].sent->wait();
}

void Packet::send() {
  if (places_.end == 0) return;
  device_.upload_pinned(memory_.data(), slots_[slot_].memory.data(), places_.end);
  slots_[slot_].sent->record();
}

void CapturedSteps::run(const LaunchList& launches) {
  const auto at = std::ranges::find(known_, launches, &Known::launches);
  if (at != known_.end()) {
    if (at->step == nullptr) return run_one_by_one(launches);
    ++num_repeated_;
    return device_.start(*at->step);
  }
  run_one_by_one(launches);  // by then every kernel has been loaded: that is not to happen while a step is captured
  if (known_.size() == kMost) return;
  device_.begin_capture();
  run_one_by_one(launches);
  known_.push_back({launches, device_.end_capture()});
}

void CapturedSteps::run_one_by_one(const LaunchList& launches) {
  for (std::size_t i = 0; i < launches.size(); ++i) device_.start(launches.at(i));
}

}  // namespace quire::gpu
