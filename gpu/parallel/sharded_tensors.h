// Tensors of a tensor-parallel model: one of each rank, made by that rank's ops.
// Shape   a weight that is cut (shards.h) has a rank's outputs on that rank; packed() is that of sharded_weights.h. A
//         buffer has room on every rank for whole rows and, if its width divides evenly, for the rank's columns of
//         them; is_parted() says which of the two is valid.
// Owner   the caller of ShardedOps that asked for them.
// Thread  made while starting; then the engine thread.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/backend/tensors.h"
#include "gpu/parallel/sharded_weights.h"
#include "gpu/parallel/shards.h"
#include "gpu/tensors.h"

namespace quire::gpu {

template <typename Made>
using OfRanks = std::vector<std::unique_ptr<Made>>;

class ShardedWeight final : public backend::Weight {
 public:
  ShardedWeight(const backend::WeightShape& shape, const CutHead& head, OfRanks<backend::Weight> ranks,
                std::span<const std::byte> packed, std::shared_ptr<const void> owner)
      : shape_(shape),
        head_(head),
        ranks_(std::move(ranks)),
        packed_(packed),
        bytes_(packed.size()),
        owner_(std::move(owner)) {}

  std::uint32_t n() const override { return shape_.n; }
  std::uint32_t k() const override { return shape_.k; }
  backend::Format format() const override { return shape_.format; }
  bool has_columns() const override { return shape_.has_columns; }
  std::span<const std::byte> packed() const override { return packed_; }
  std::size_t bytes() const override { return bytes_; }
  void free_host_copy() override {
    for (const auto& rank : ranks_) rank->free_host_copy();
    packed_ = {};
    owner_.reset();
  }

  bool is_cut() const { return head_.is_cut(); }
  std::span<const std::uint32_t> outputs() const { return head_.matrices(); }
  Columns columns() const { return columns_of(outputs(), head_.num_ranks); }
  const backend::Weight& of(std::size_t rank) const { return *ranks_[rank]; }

 private:
  backend::WeightShape shape_;
  CutHead head_;
  OfRanks<backend::Weight> ranks_;
  std::span<const std::byte> packed_;
  std::size_t bytes_;
  std::shared_ptr<const void> owner_;
};

class ShardedVector final : public backend::Vector {
 public:
  explicit ShardedVector(OfRanks<backend::Vector> ranks) : ranks_(std::move(ranks)) {}
  std::uint32_t size() const override { return ranks_.front()->size(); }
  const backend::Vector& of(std::size_t rank) const { return *ranks_[rank]; }

 private:
  OfRanks<backend::Vector> ranks_;
};

// Every rank's routes, which are the same.
class ShardedRoutes final : public backend::Routes {
 public:
  explicit ShardedRoutes(OfRanks<backend::Routes> ranks) : ranks_(std::move(ranks)) {}
  std::uint32_t max_rows() const override { return ranks_.front()->max_rows(); }
  std::uint32_t num_experts() const override { return ranks_.front()->num_experts(); }
  std::uint32_t top_k() const override { return ranks_.front()->top_k(); }
  backend::Routes& of(std::size_t rank) const { return *ranks_[rank]; }

 private:
  OfRanks<backend::Routes> ranks_;
};

class ShardedRope final : public backend::RopeTable {
 public:
  explicit ShardedRope(OfRanks<backend::RopeTable> ranks) : ranks_(std::move(ranks)) {}
  std::uint32_t positions() const override { return ranks_.front()->positions(); }
  const backend::RopeTable& of(std::size_t rank) const { return *ranks_[rank]; }

 private:
  OfRanks<backend::RopeTable> ranks_;
};

class ShardedBuffer final : public backend::Buffer {
 public:
  ShardedBuffer(OfRanks<backend::Buffer> whole, OfRanks<backend::Buffer> parts)
      : whole_(std::move(whole)), parts_(std::move(parts)) {}
  std::uint32_t max_rows() const override { return whole_.front()->max_rows(); }
  std::uint32_t width() const override { return whole_.front()->width(); }

  backend::Buffer& whole(std::size_t rank) const { return *whole_[rank]; }
  backend::Buffer& part(std::size_t rank) const { return *parts_[rank]; }
  std::vector<float*> whole() const { return data(whole_); }
  std::vector<const float*> parts() const { return data<const float>(parts_); }

  // True: each rank has its columns only. False: every rank has whole rows.
  bool is_parted() const { return columns_.width() != 0; }
  const Columns& columns() const { return columns_; }
  void is_now_parted(const Columns& columns) { columns_ = columns; }
  void is_now_whole() { columns_ = {}; }

 private:
  template <typename T = float>
  static std::vector<T*> data(const OfRanks<backend::Buffer>& ranks) {
    std::vector<T*> out;
    for (const auto& rank : ranks) out.push_back(static_cast<const DeviceBuffer&>(*rank).data());
    return out;
  }

  OfRanks<backend::Buffer> whole_;
  OfRanks<backend::Buffer> parts_;
  Columns columns_;
};

// The KV cache. If its groups of layers are alike, a block has the bytes of one on one GPU: for each layer the heads of
// all ranks in order. Otherwise a layer's offset depends on the block's group, which read_block() and write_block() do
// not know: the blocks of the ranks stand one behind the other.
class ShardedCache final : public backend::KvCache {
 public:
  ShardedCache(const backend::KvShape& shape, OfRanks<backend::KvCache> ranks)
      : shape_(shape), ranks_(std::move(ranks)) {
    pieces_ = {0, rank().block_bytes()};
    if (shape.groups_are_alike()) pieces_.insert(rank().layer_offsets().begin(), rank().layer_offsets().end());
  }
  const backend::KvShape& shape() const override { return shape_; }
  std::size_t bytes() const override {
    std::size_t bytes = 0;
    for (const auto& rank : ranks_) bytes += rank->bytes();
    return bytes;
  }
  std::size_t block_bytes() const override { return ranks_.size() * rank().block_bytes(); }

  backend::KvCache& of(std::size_t rank) const { return *ranks_[rank]; }
  // Any rank's part.
  const DeviceCache& rank() const { return static_cast<const DeviceCache&>(*ranks_.front()); }
  // Calls copy(offset in the block of one rank, offset in the block of all, bytes) for the pieces of a rank's block.
  void for_pieces(std::size_t rank, const auto& copy) const {
    for (auto at = pieces_.begin(), end = std::next(at); end != pieces_.end(); at = end++) {
      copy(*at, *at * ranks_.size() + rank * (*end - *at), *end - *at);
    }
  }

 private:
  backend::KvShape shape_;
  OfRanks<backend::KvCache> ranks_;
  std::set<std::size_t> pieces_;  // byte offsets in a rank's block, and its end
};

}  // namespace quire::gpu
