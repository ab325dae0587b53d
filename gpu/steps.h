// Step buffers and captured steps, which make a step cheap to start: all that changes from step to step is sent by one
// copy, and decode steps run as CUDA graphs, one per bucket of rows.
//   bucket       the smallest size that holds the step's rows. The grids have that many rows; rows behind the real ones
//                are marked as padding in the step buffer and store nothing.
//   step buffer  tokens | rows by group | logits rows | kept groups | block tables: in pinned memory, one slot per step
//                in flight, and at the same device addresses in every step of the same bucket.
// Owner   GpuOps; the device outlives them.
// Thread  engine, after start.
// Fails   constructors: StartError, out of memory. A step beyond the given sizes is our bug: CHECK.
// Source  CUDA graphs by batch size: vLLM and SGLang; finding them by their list of launches is ours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "gpu/kernels/attention.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

inline constexpr std::uint32_t kBuckets[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256, 384, 512};

// Bucket of a step of `rows` rows if steps of up to `most` rows are captured; never more than `most`. 0: not captured.
constexpr std::uint32_t bucket_of(std::uint32_t rows, std::uint32_t most) {
  if (rows == 0 || rows > most) return 0;
  for (const std::uint32_t bucket : kBuckets) {
    if (bucket >= rows) return bucket < most ? bucket : most;
  }
  return 0;
}

inline constexpr std::size_t kUploadBoundary = 16;  // alignment of each part of an upload, in bytes
constexpr std::size_t on_boundary(std::size_t bytes) {
  return (bytes + kUploadBoundary - 1) / kUploadBoundary * kUploadBoundary;
}

struct StepBufferSizes {
  std::uint32_t rows = 0;
  std::uint32_t groups = 1;  // of layers: each has rows and tables of its own
  std::uint32_t logits_rows = 0;
  std::uint32_t kept_groups = 0;
  std::uint32_t table_entries = 0;  // of one group
};

// Byte offset of each part, and of the end.
struct StepBufferOffsets {
  std::size_t tokens = 0;
  std::size_t rows = 0;
  std::size_t logits_rows = 0;
  std::size_t kept_groups = 0;
  std::size_t tables = 0;
  std::size_t end = 0;
};
constexpr StepBufferOffsets places_of(const StepBufferSizes& sizes) {
  const auto behind = [](std::size_t place, std::size_t count, std::size_t size) {
    return on_boundary(place + count * size);
  };
  StepBufferOffsets places;
  places.rows = behind(places.tokens, sizes.rows, sizeof(std::int32_t));
  places.logits_rows = behind(places.rows, std::size_t{sizes.rows} * sizes.groups, sizeof(RowOfBatch));
  places.kept_groups = behind(places.logits_rows, sizes.logits_rows, sizeof(std::uint32_t));
  places.tables = behind(places.kept_groups, sizes.kept_groups, sizeof(std::uint16_t));
  places.end = behind(places.tables, std::size_t{sizes.table_entries} * sizes.groups, sizeof(std::uint32_t));
  return places;
}

// Upload of a step: filled in on the host and sent by one copy, to the same device memory every time. The pinned memory
// has one slot per step in flight, so that filling one in does not wait for the device.
class StepUpload {
 public:
  StepUpload(Device& device, std::size_t most_bytes, std::uint32_t depth, const char* what);

  // Returns the next slot to fill in; waits until the last copy from it is done.
  std::byte* begin();
  std::byte* slot() const { return slots_[slot_].memory.data(); }  // the slot of the last begin()
  void send(std::size_t bytes);                                    // the first `bytes` of it
  const std::byte* on_device() const { return memory_.as<const std::byte>(); }
  std::size_t most_bytes() const { return memory_.bytes(); }

 private:
  struct Slot {
    PinnedMemory memory;
    std::unique_ptr<Event> sent;
  };
  Device* device_;
  DeviceMemory memory_;
  std::vector<Slot> slots_;
  std::size_t slot_ = 0;
};

class StepBuffer {
 public:
  // most: sizes that no step exceeds. depth: steps in flight.
  StepBuffer(Device& device, const StepBufferSizes& most, std::uint32_t depth);

  // Begins the next step buffer, whose parts are then filled in on the host.
  void begin(const StepBufferSizes& sizes);
  std::span<std::int32_t> tokens() { return part<std::int32_t>(places_.tokens, sizes_.rows); }
  std::span<RowOfBatch> rows(std::uint32_t group) {
    return part<RowOfBatch>(places_.rows + group * std::size_t{sizes_.rows} * sizeof(RowOfBatch), sizes_.rows);
  }
  std::span<std::uint32_t> logits_rows() { return part<std::uint32_t>(places_.logits_rows, sizes_.logits_rows); }
  std::span<std::uint16_t> kept_groups() { return part<std::uint16_t>(places_.kept_groups, sizes_.kept_groups); }
  std::span<BlockId> tables() {
    return part<BlockId>(places_.tables, std::size_t{sizes_.table_entries} * sizes_.groups);
  }
  // Queues the one copy.
  void send();

  // Device addresses in the step buffer sent last.
  const std::int32_t* device_tokens() const { return there<std::int32_t>(places_.tokens); }
  const RowOfBatch* device_rows() const { return there<RowOfBatch>(places_.rows); }
  const std::uint32_t* device_logits_rows() const { return there<std::uint32_t>(places_.logits_rows); }
  const std::uint16_t* device_kept_groups() const { return there<std::uint16_t>(places_.kept_groups); }
  const std::uint32_t* device_tables() const { return there<std::uint32_t>(places_.tables); }

 private:
  template <typename T>
  std::span<T> part(std::size_t place, std::size_t count) {
    return {reinterpret_cast<T*>(upload_.slot() + place), count};
  }
  template <typename T>
  const T* there(std::size_t place) const {
    return reinterpret_cast<const T*>(upload_.on_device() + place);
  }

  const StepBufferSizes most_;
  StepUpload upload_;
  StepBufferSizes sizes_;
  StepBufferOffsets places_;
};

// Steps by their list of launches. A list that is not known runs kernel by kernel and is then captured; when the same
// list comes again, the captured step (CUDA graph) runs instead. If all kMost places are taken, the least recently run
// step is dropped, provided that it last ran at least kLongAgo steps ago; otherwise a cycle of kMost + 1 steps would
// capture one in every step.
class CapturedSteps {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::uint64_t kLongAgo = 4 * kMost;  // steps; the device has finished with it by then

  explicit CapturedSteps(Device& device) : device_(device) { known_.reserve(kMost); }
  void run(const LaunchList& launches);

  std::size_t num_captured() const { return known_.size(); }
  std::uint64_t num_repeated() const { return num_repeated_; }

 private:
  struct Known {
    LaunchList launches;
    std::unique_ptr<CapturedStep> step;  // null: out of memory, runs kernel by kernel
    std::uint64_t last_run = 0;
  };
  void run_one_by_one(const LaunchList& launches);
  bool make_room();

  Device& device_;
  std::vector<Known> known_;
  std::uint64_t num_run_ = 0;
  std::uint64_t num_repeated_ = 0;
};

// Rows of a step as layers of one group see them; rows behind the batch's are nobody's. The tables of all groups are
// one array, so that its address is in no launch.
void fill_rows(const backend::Batch& batch, std::uint32_t group, std::span<RowOfBatch> rows);

}  // namespace quire::gpu
