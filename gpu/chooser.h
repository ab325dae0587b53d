// Samples the logits rows of a step on the device, where the logits stay: two kernels (gpu/kernels/choose_rows.h and
// choose_walks.h), with the host sampler's tokens, numbers and lists bit for bit. A Said for each logits row and its
// list of likeliest tokens come back.
//   A walk is a logits row that hangs below no other, with its draft's nodes. Left to the host
//   (core/backend/choices.h), with a download of their rows alone: drafts that are judged by law, and walks whose edits
//   outgrow the room.
// Shape   logits rows in groups, one after another, as many walks as the room has place for: in most steps there is one
//         group, and one upload. chosen() [R]: the token of each logits row; -1 as in backend::Choice. It
//         stays on the device until the next choose(), and is there for whatever runs behind this one.
// Owner   whoever has the device. Lists are shown until the next forget().
// Thread  made while starting; then engine. choose() queues, and waits where something is left to the host; collect()
//         waits for this step, and for no later one.
// Fails   StartError: no memory for it. Nothing is allocated on the device after make_room().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/choices.h"
#include "core/sample/scratch.h"
#include "gpu/kernels/choose_told.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// True if the kernels can verify the draft of this logits row: all but those accepted by rejection sampling.
bool chosen_on_device(const backend::LogitsRow& logits_row);

struct ChooserOptions {
  std::uint32_t max_logits_rows = 0;
  std::uint32_t max_edited = 128;                 // rows with edits in a group; a walk has 65 at most
  std::size_t edit_bytes = std::size_t{8} << 20;  // of the edits of a group
};

class Chooser {
 public:
  Chooser(Device& device, const ChooserOptions& options);

  // While starting: rows of logits may be so wide.
  void make_room(std::uint32_t width);

  void forget() { num_logits_rows_ = 0; }
  // Rows [R, width] of logits on the device, of which [0, vocab) are looked at.
  void choose(const backend::Batch& batch, const float* logits, std::uint32_t width, std::uint32_t vocab);
  void collect(std::span<backend::Choice> choices);

  const TokenId* chosen() const { return chosen_.as<const TokenId>(); }
  // Of the step chosen last.
  std::uint32_t num_groups() const { return num_groups_; }
  std::span<const std::uint32_t> left_to_host() const { return host_walks_; }  // first logits rows

 private:
  struct Logits {
    const float* rows = nullptr;
    std::uint32_t width = 0;
    std::uint32_t vocab = 0;
  };

  bool add(std::uint32_t walk, std::uint32_t vocab);
  RowToChoose told_of(std::uint32_t logits_row, std::uint32_t vocab);
  template <typename T>
  std::size_t list(std::span<const T> values);
  void run_group(const Logits& logits);
  void choose_on_host(const backend::Batch& batch, const Logits& logits);

  Device& device_;
  const ChooserOptions options_;
  PinnedMemory upload_;
  PinnedMemory told_;  // as said_
  std::unique_ptr<Event> is_sent_;
  std::unique_ptr<Event> is_told_;
  DeviceMemory packed_;
  DeviceMemory copies_;   // [max_edited, width]
  DeviceMemory highest_;  // [max_logits_rows, pieces]
  DeviceMemory said_;     // Said [max_logits_rows], then lists
  DeviceMemory chosen_;

  std::span<const backend::LogitsRow> logits_rows_;
  std::uint32_t num_logits_rows_ = 0;
  std::uint32_t num_groups_ = 0;
  std::vector<std::uint32_t> list_at_;  // by logits row, and behind the last: where its list begins

  // Of the group that is being made.
  std::vector<RowToChoose> rows_;
  std::vector<WalkToChoose> walks_;
  std::vector<NodeOfWalk> nodes_;
  std::vector<std::byte> edits_;
  std::uint32_t num_edited_ = 0;

  std::vector<std::uint32_t> host_walks_;
  std::vector<float> host_logits_;
  std::vector<TokenId> host_tokens_;
  backend::Choices choices_;
  sample::Scratch sampling_{0};
};

}  // namespace quire::gpu
