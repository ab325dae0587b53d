#include "gpu/parallel/collective.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::gpu {

Collective::Collective(std::span<Device* const> ranks, const CollectiveOptions& options, Rendezvous* rendezvous,
                       std::unique_ptr<Nccl> library)
    : options_(options), rendezvous_(rendezvous), library_(std::move(library)) {
  const auto num_ranks = static_cast<std::uint32_t>(ranks.size());
  CHECK(num_ranks > 1 && num_ranks <= kMostRanks);
  CHECK_GT(options.box, 0u);
  CHECK(library_ == nullptr || rendezvous_ != nullptr);
  for (Device* device : ranks) {
    Rank rank{device, DeviceMemory(*device, num_ll_words(num_ranks, options.box) * sizeof(LlWord), "LL words"),
              DeviceMemory(*device, sizeof(std::uint32_t), "an epoch"),
              DeviceMemory(*device, sizeof(std::uint32_t), "a counter"), DeviceMemory()};
    device->fill(rank.boxes.data(), std::byte{0}, rank.boxes.bytes());
    device->fill(rank.arrived.data(), std::byte{0}, rank.arrived.bytes());
    device->upload(rank.epoch.data(), &options.first_epoch, sizeof(options.first_epoch));
    ranks_.push_back(std::move(rank));
  }
  // No rank may post to one whose boxes are not yet cleared.
  for (const Rank& rank : ranks_) {
    const auto emptied = rank.device->make_event();
    emptied->record();
    emptied->wait();
  }
}

void Collective::make_room(std::size_t count) {
  if (!goes_by_library(count / ranks_.size())) return;
  for (Rank& rank : ranks_) {
    const std::size_t bytes = count * sizeof(float);
    if (bytes > rank.gathered.bytes()) rank.gathered = DeviceMemory(*rank.device, bytes, "all-gather buffer");
  }
}

void Collective::sum(std::span<float* const> x, std::size_t count) {
  if (goes_by_library(count)) {
    return rendezvous_->meet([this, all = std::vector<float*>(x.begin(), x.end()),
                              count](std::span<void* const> queues) { library_->sum(all, count, queues); });
  }
  in_pieces(count, [&](Rank& rank, const CollectiveArgs& args) {
    rank.device->start(rank.device->kernels().all_reduce, {args.num_blocks, 1}, {args, x[args.rank], x[args.rank]});
  });
}

void Collective::gather(std::span<const float* const> parts, const Columns& columns, std::uint32_t rows, bool adds,
                        std::span<float* const> out) {
  const std::size_t count = std::size_t{rows} * columns.width();
  if (goes_by_library(count)) return gather_by_library(parts, columns, count, adds, out);
  in_pieces(count, [&](Rank& rank, const CollectiveArgs& args) {
    rank.device->start(rank.device->kernels().all_gather, {args.num_blocks, 1},
                       {args, parts[args.rank], columns, adds, out[args.rank]});
  });
}

void Collective::gather_by_library(std::span<const float* const> parts, const Columns& columns, std::size_t count,
                                   bool adds, std::span<float* const> out) {
  CHECK_LE(count, std::size_t{0xffffffff});
  std::vector<float*> gathered;
  for (const Rank& rank : ranks_) {
    CHECK_LE(count * ranks_.size() * sizeof(float), rank.gathered.bytes());
    gathered.push_back(rank.gathered.as<float>());
  }
  rendezvous_->meet([this, from = std::vector<const float*>(parts.begin(), parts.end()), gathered,
                     count](std::span<void* const> queues) { library_->gather(from, count, gathered, queues); });
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Device& device = *ranks_[r].device;
    const auto blocks = static_cast<unsigned>((count + PlaceGathered::kThreads - 1) / PlaceGathered::kThreads);
    device.start(device.kernels().place_gathered, {blocks, static_cast<unsigned>(ranks_.size())},
                 {gathered[r], static_cast<std::uint32_t>(count), columns, static_cast<std::uint32_t>(ranks_.size()),
                  adds, out[r]});
  }
}

void Collective::in_pieces(std::size_t count,
                           const std::function<void(Rank& rank, const CollectiveArgs& args)>& start) {
  CHECK_LE(count, std::size_t{0xffffffff});
  for (std::size_t first = 0; first < count; first += options_.box) {
    CollectiveArgs args;
    args.num_ranks = static_cast<std::uint32_t>(ranks_.size());
    args.first = static_cast<std::uint32_t>(first);
    args.count = static_cast<std::uint32_t>(std::min<std::size_t>(options_.box, count - first));
    args.num_blocks = std::min(pieces_of(args.count, CollectiveArgs::kThreads), CollectiveArgs::kMostBlocks);
    args.box = options_.box;
    for (std::uint32_t rank = 0; rank < args.num_ranks; ++rank) args.boxes[rank] = ranks_[rank].boxes.as<LlWord>();
    for (args.rank = 0; args.rank < args.num_ranks; ++args.rank) {
      args.epoch = ranks_[args.rank].epoch.as<std::uint32_t>();
      args.arrived = ranks_[args.rank].arrived.as<std::uint32_t>();
      start(ranks_[args.rank], args);
    }
  }
}

}  // namespace quire::gpu
