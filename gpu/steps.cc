#include "gpu/steps.h"

#include "core/base/check.h"

namespace quire::gpu {

static_assert(sizeof(BlockId) == sizeof(std::uint32_t));

StepUpload::StepUpload(Device& device, std::size_t most_bytes, std::uint32_t depth, const char* what)
    : device_(&device), memory_(device, most_bytes, what) {
  for (std::uint32_t i = 0; i < depth; ++i) {
    slots_.push_back({PinnedMemory(device, most_bytes, what), device.make_event()});
  }
}

std::byte* StepUpload::begin() {
  slot_ = (slot_ + 1) % slots_.size();
  slots_[slot_].sent->wait();
  return slot();
}

void StepUpload::send(std::size_t bytes) {
  CHECK_LE(bytes, most_bytes());
  if (bytes == 0) return;
  device_->upload_pinned(memory_.data(), slot(), bytes);
  slots_[slot_].sent->record();
}

StepBuffer::StepBuffer(Device& device, const StepBufferSizes& most, std::uint32_t depth)
    : most_(most), upload_(device, places_of(most).end, depth, "step buffers") {}

void StepBuffer::begin(const StepBufferSizes& sizes) {
  CHECK_LE(sizes.rows, most_.rows);
  CHECK_LE(sizes.logits_rows, most_.logits_rows);
  CHECK_LE(sizes.kept_groups, most_.kept_groups);
  CHECK_LE(sizes.groups, most_.groups);
  CHECK_LE(sizes.table_entries, most_.table_entries);
  sizes_ = sizes;
  places_ = places_of(sizes);
  upload_.begin();
}

void StepBuffer::send() { upload_.send(places_.end); }

void CapturedSteps::run(const LaunchList& launches) {
  ++num_run_;
  const auto at = std::ranges::find(known_, launches, &Known::launches);
  if (at != known_.end()) {
    at->last_run = num_run_;
    if (at->step == nullptr) return run_one_by_one(launches);
    ++num_repeated_;
    return device_.start(*at->step);
  }
  run_one_by_one(launches);  // loads every kernel, which must not happen during capture
  if (!make_room()) return;
  device_.begin_capture();
  run_one_by_one(launches);
  known_.push_back({launches, device_.end_capture(), num_run_});
}

bool CapturedSteps::make_room() {
  if (known_.size() < kMost) return true;
  const auto oldest = std::ranges::min_element(known_, {}, &Known::last_run);
  if (num_run_ - oldest->last_run < kLongAgo) return false;
  std::swap(*oldest, known_.back());
  known_.pop_back();
  return true;
}

void CapturedSteps::run_one_by_one(const LaunchList& launches) {
  for (std::size_t i = 0; i < launches.size(); ++i) device_.start(launches.at(i));
}

void fill_rows(const backend::Batch& batch, std::uint32_t group, std::span<RowOfBatch> rows) {
  const auto first_table = static_cast<std::uint32_t>(batch.block_tables.size() / batch.num_groups() * group);
  const std::span<const std::uint32_t> slots = batch.of_group(group).slots;
  for (const backend::SequenceRows& sequence : batch.sequences) {
    for (std::uint32_t i = 0; i < sequence.num_rows; ++i) {
      const std::uint32_t row = sequence.first_row + i;
      RowOfBatch& out = rows[row] = {};
      out.position = batch.positions[row];
      out.slot = slots[row];
      out.first_table = first_table + sequence.first_table;
      out.first_kept = sequence.first_kept;
      out.num_kept = sequence.num_kept;
      out.first_row = sequence.first_row;
      out.first_position = sequence.first_position;
      out.residual_group = sequence.residual_group;
      out.first_accumulated_score = sequence.first_accumulated_score;
      out.num_accumulated_scores = sequence.num_accumulated_scores;
      if (i >= sequence.num_plain()) {
        out.root_position = sequence.root_position();
        out.ancestors = batch.ancestors[sequence.first_node + (i - sequence.num_plain())];
      }
    }
  }
  for (RowOfBatch& nobody : rows.subspan(batch.num_rows())) nobody = {.slot = RowOfBatch::kNobody};
}

}  // namespace quire::gpu
