// Sampler of a step's logits rows on the device, where the logits are: two kernels (choose_rows.h and choose_verified.h
// of gpu/kernels/choose) with the host sampler's tokens, log probabilities and lists, bit for bit. A Said per logits
// row and its list of likeliest tokens are copied to the host.
//   A verification is a logits row that is no draft node, with the nodes of its draft. The host samples
//   (core/backend/host_sampler.h), after a download of their rows alone, drafts that are accepted by rejection sampling
//   and verifications whose edits do not fit into a group.
// Shape   logits rows are sampled in groups, one after another. A group takes as many verifications as its edits allow;
//         most steps have one group and one upload. chosen() [R]: the token of each logits row, -1 as in
//         backend::Choice. It stays on the device until the next choose(), for kernels queued behind this one.
// Owner   GpuOps; the device outlives it. Lists are valid until the next forget().
// Thread  made while starting; then engine. choose() queues work; it waits for a previous group's upload and for logits
//         that the host samples. collect() waits for this step, and for no later one.
// Fails   StartError: out of memory. Nothing is allocated on the device after make_room().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/backend/batch.h"
#include "core/backend/host_sampler.h"
#include "core/sample/scratch.h"
#include "gpu/kernels/choose/choose_args.h"
#include "gpu/runtime/device.h"

namespace quire::gpu {

// True if the kernels sample this logits row and its draft: all but drafts that are accepted by rejection sampling.
bool chosen_on_device(const backend::LogitsRow& logits_row);

struct ChooserOptions {
  std::uint32_t max_logits_rows = 0;
  std::uint32_t max_edited = 128;                 // rows with edits in a group; a verification has at most 65
  std::size_t edit_bytes = std::size_t{8} << 20;  // edits of a group
};

class Chooser {
 public:
  Chooser(Device& device, const ChooserOptions& options);

  // Called while starting: logits rows are up to `width` wide.
  void make_room(std::uint32_t width);

  void forget() { num_logits_rows_ = 0; }
  // Samples from logits [R, width] on the device, of which columns [0, vocab) are read.
  void choose(const backend::Batch& batch, const float* logits, std::uint32_t width, std::uint32_t vocab);
  void collect(std::span<backend::Choice> choices);

  const TokenId* chosen() const { return chosen_.as<const TokenId>(); }
  // Results of the last choose(): its number of groups, and the first logits row of each verification left to the host.
  std::uint32_t num_groups() const { return num_groups_; }
  std::span<const std::uint32_t> left_to_host() const { return host_verifications_; }

 private:
  struct Logits {
    const float* rows = nullptr;
    std::uint32_t width = 0;
    std::uint32_t vocab = 0;
  };

  bool add(std::uint32_t verification, std::uint32_t vocab);
  LogitsRowArgs logits_row_args(std::uint32_t logits_row, std::uint32_t vocab);
  template <typename T>
  std::size_t list(std::span<const T> values);
  void run_group(const Logits& logits);
  void choose_on_host(const backend::Batch& batch, const Logits& logits);

  Device& device_;
  const ChooserOptions options_;
  PinnedMemory upload_;
  PinnedMemory results_;  // same layout as sampled_
  std::unique_ptr<Event> is_sent_;
  std::unique_ptr<Event> is_uploaded_;
  DeviceMemory packed_;
  DeviceMemory copies_;   // [max_edited, width]
  DeviceMemory highest_;  // [max_logits_rows, pieces]
  DeviceMemory sampled_;  // Said [max_logits_rows], then lists
  DeviceMemory chosen_;

  std::span<const backend::LogitsRow> logits_rows_;
  std::uint32_t num_logits_rows_ = 0;
  std::uint32_t num_groups_ = 0;
  std::vector<std::uint32_t> list_at_;  // [R + 1] offset of each logits row's list, and their end

  // The group that is being built.
  std::vector<LogitsRowArgs> rows_;
  std::vector<VerificationArgs> verifications_;
  std::vector<NodeToVerify> nodes_;
  std::vector<std::byte> edits_;
  std::uint32_t num_edited_ = 0;

  std::vector<std::uint32_t> host_verifications_;
  std::vector<float> host_logits_;
  std::vector<TokenId> host_tokens_;
  backend::HostSampler choices_;
  sample::Scratch sampling_{0};
};

}  // namespace quire::gpu
