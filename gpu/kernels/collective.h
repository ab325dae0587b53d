// Collectives of a tensor-parallel model, each in one kernel that runs on all ranks at once: a rank posts its words to
// all others, then reads theirs (gpu/device/peers.h).
//   AllReduce  out[i] = sum over ranks r ascending of x_r[i], beginning with that of rank 0: the same bits on every
//              rank
//   AllGather  out[t, column(r, c)] = part_r[t, c] for every rank r, or that added to what is there
//   PlaceGathered  the same for parts that NCCL has gathered, rank by rank: all [ranks][T, w]
// Shape   x [count]; part [T, w], out [T, w · ranks]. A rank's columns are those of matrices that share their input,
//         one after another: its q, k and v columns lie among all q, all k and all v (gathered_column()).
// Boxes   in each rank's memory one for each sender and each parity of the epoch. When a rank posts for epoch e + 2 it
//         has read all words of e + 1, so their senders had finished reading e: two boxes suffice, and nothing is
//         cleared in between.
// Epochs  one per collective, counted in the device's memory, so that a captured step goes on counting. A message
//         shorter than its box leaves old words behind it. Epoch numbers repeat after 2^32: before that each rank
//         zeroes its boxes of one parity while those of the other are in use (sweep()).
// Launch  one grid per rank, small enough that all its blocks are resident (kMostBlocks): they wait for those of other
//         ranks.
// Source  one-shot all-reduce with LL flags: NCCL, TensorRT-LLM; sweeping instead of clearing is ours.
#pragma once

#include "gpu/device/peers.h"
#include "gpu/device/stream.h"

namespace quire::gpu {

inline constexpr unsigned kMostRanks = 8;

// Number of a rank's columns, by matrix.
struct Columns {
  static constexpr unsigned kMost = 3;
  std::uint32_t of[kMost] = {};

  constexpr std::uint32_t width() const { return of[0] + of[1] + of[2]; }
};

// Column c of a rank, among the columns of all ranks.
constexpr std::uint32_t gathered_column(const Columns& columns, std::uint32_t num_ranks, std::uint32_t rank,
                                        std::uint32_t c) {
  std::uint32_t before = 0;
  for (unsigned matrix = 0; matrix + 1 < Columns::kMost; ++matrix) {
    if (c < columns.of[matrix]) return before * num_ranks + rank * columns.of[matrix] + c;
    c -= columns.of[matrix];
    before += columns.of[matrix];
  }
  return before * num_ranks + rank * columns.of[Columns::kMost - 1] + c;
}

inline constexpr std::uint32_t kFirstEpoch = 2;  // no epoch is 0; successive ones differ in their lowest bit
constexpr std::uint32_t epoch_after(std::uint32_t epoch) { return epoch == 0xffffffffu ? kFirstEpoch : epoch + 1; }
// True twice in 2^31 epochs, for an even and an odd one: the boxes of the other parity are swept before
// their next use.
constexpr bool sweeps(std::uint32_t epoch) { return (epoch & 0x7ffffffeu) == 0x7ffffffeu; }

// Index of a sender's first LL word among a rank's boxes.
constexpr std::size_t box_at(std::uint32_t epoch, std::uint32_t num_ranks, std::uint32_t sender, std::uint32_t box) {
  return (std::size_t{epoch % 2} * num_ranks + sender) * box;
}
constexpr std::size_t num_ll_words(std::uint32_t num_ranks, std::uint32_t box) {
  return std::size_t{2} * num_ranks * box;
}

struct CollectiveArgs {
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kMostBlocks = 32;

  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 0;
  std::uint32_t first = 0;  // first word of this piece, if the message is longer than a box
  std::uint32_t count = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t box = 0;             // LL words
  LlWord* boxes[kMostRanks] = {};    // boxes of every rank
  std::uint32_t* epoch = nullptr;    // this rank's
  std::uint32_t* arrived = nullptr;  // blocks that have ended; 0 between kernels
};

// One thread's part in a collective. Constructed, and end() called, by all threads of all blocks.
class LlExchange {
 public:
  QUIRE_DEVICE explicit LlExchange(const CollectiveArgs& args) : a_(args), epoch_(*args.epoch) {
    if (sweeps(epoch_)) sweep();
  }

  // body(i) for each of the thread's words.
  template <typename Body>
  QUIRE_DEVICE void for_words(const Body& body) const {
    for (std::uint32_t i = first(); i < a_.count; i += stride()) body(i);
  }
  QUIRE_DEVICE void send_all(std::uint32_t i, float x) const {
    for (std::uint32_t to = 0; to < a_.num_ranks; ++to) {
      if (to != a_.rank) post(a_.boxes[to] + box_at(epoch_, a_.num_ranks, a_.rank, a_.box) + i, {bits_of(x), epoch_});
    }
  }
  // Waits for another rank's word.
  QUIRE_DEVICE float received_from(std::uint32_t sender, std::uint32_t i) const {
    const LlWord* at = a_.boxes[a_.rank] + box_at(epoch_, a_.num_ranks, sender, a_.box) + i;
    LlWord ll_word = look(at);
    for (unsigned looks = 1; ll_word.epoch != epoch_; ++looks) {
      pause(looks);
      ll_word = look(at);
    }
    return f32_of_bits(ll_word.data);
  }
  // Called by all threads of the block.
  QUIRE_DEVICE void end() const {
    if (last_to_arrive(a_.arrived, a_.num_blocks) && thread() == 0) *a_.epoch = epoch_after(epoch_);
  }

 private:
  QUIRE_DEVICE std::uint32_t first() const { return block().x * CollectiveArgs::kThreads + thread(); }
  QUIRE_DEVICE std::uint32_t stride() const { return a_.num_blocks * CollectiveArgs::kThreads; }
  // Zeroes this rank's boxes of the other parity. It comes before the block's first post: another rank posts for the
  // next epoch only after it has read all words of this one, so after the sweep.
  QUIRE_DEVICE void sweep() const {
    LlWord* other = a_.boxes[a_.rank] + box_at(epoch_ + 1, a_.num_ranks, 0, a_.box);
    for (std::uint32_t i = first(); i < a_.num_ranks * a_.box; i += stride()) post(other + i, {});
    post_in_order();
    sync_block();
  }

  const CollectiveArgs& a_;
  const std::uint32_t epoch_;
};

struct AllReduce {
  struct Args {
    CollectiveArgs collective;
    const float* x = nullptr;
    float* out = nullptr;  // may be x
  };
  static constexpr unsigned kThreads = CollectiveArgs::kThreads;
  static constexpr bool kMeetsPeers = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const LlExchange ll_words(a.collective);
    const float* x = a.x + a.collective.first;
    float* out = a.out + a.collective.first;
    ll_words.for_words([&](std::uint32_t i) { ll_words.send_all(i, x[i]); });
    ll_words.for_words([&](std::uint32_t i) {
      float sum = 0.0f;
      for (std::uint32_t rank = 0; rank < a.collective.num_ranks; ++rank) {
        const float of_rank = rank == a.collective.rank ? x[i] : ll_words.received_from(rank, i);
        sum = rank == 0 ? of_rank : sum + of_rank;
      }
      out[i] = sum;
    });
    ll_words.end();
  }
};

struct AllGather {
  struct Args {
    CollectiveArgs collective;
    const float* part = nullptr;
    Columns columns;  // of a rank
    bool adds = false;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = CollectiveArgs::kThreads;
  static constexpr bool kMeetsPeers = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const LlExchange ll_words(a.collective);
    const float* part = a.part + a.collective.first;
    const std::uint32_t width = a.columns.width();
    ll_words.for_words([&](std::uint32_t i) { ll_words.send_all(i, part[i]); });
    ll_words.for_words([&](std::uint32_t i) {
      const std::uint32_t row = (a.collective.first + i) / width;
      const std::uint32_t column = (a.collective.first + i) % width;
      float* out = a.out + std::size_t{row} * width * a.collective.num_ranks;
      for (std::uint32_t rank = 0; rank < a.collective.num_ranks; ++rank) {
        const float x = rank == a.collective.rank ? part[i] : ll_words.received_from(rank, i);
        float& to = out[gathered_column(a.columns, a.collective.num_ranks, rank, column)];
        to = a.adds ? to + x : x;
      }
    });
    ll_words.end();
  }
};

// block().y is the rank whose part is placed.
struct PlaceGathered {
  struct Args {
    const float* all = nullptr;
    std::uint32_t count = 0;  // per rank
    Columns columns;
    std::uint32_t num_ranks = 0;
    bool adds = false;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 256;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::uint32_t i = block().x * kThreads + thread();
    if (i >= a.count) return;
    const std::uint32_t width = a.columns.width();
    const std::size_t row = std::size_t{i / width} * width * a.num_ranks;
    float& to = a.out[row + gathered_column(a.columns, a.num_ranks, block().y, i % width)];
    const float x = a.all[std::size_t{block().y} * a.count + i];
    to = a.adds ? to + x : x;
  }
};

}  // namespace quire::gpu
