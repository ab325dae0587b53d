// What ranks of a tensor-parallel model tell each other, in one kernel that runs on all of them at once: each posts its
// words to all others, then reads theirs (gpu/device/peers.h).
//   AllReduce  out[i] = sum over ranks r ascending of x_r[i], beginning with that of rank 0: on every rank the same
//   bits
//   AllGather  out[t, column(r, c)] = part_r[t, c] for every rank r, or that added to what is there
//   PlaceGathered  the same of parts that another library brought together, rank by rank: all [ranks][T, w]
// Shape   x [count]; part [T, w], out [T, w · ranks]. A rank's columns are those of matrices that share their input,
//         one behind the other: its q, k and v lie among all q, all k and all v (gathered_column()).
// Boxes   of each rank, one for each epoch in turn (even, odd) and sender, in its own memory. When a rank posts for
//         epoch e + 2 it has read all words of e + 1, so their senders were done with reading e: two boxes suffice,
//         and nothing is emptied.
// Epochs  one an exchange, counted in the device's memory, so that a captured step goes on counting. A word may lie
//         there for long: before a number comes again the boxes are swept, each while the other is in use.
// Launch  one grid a rank, small enough that all its blocks are there at once (kMostBlocks): they wait for those of the
//         others.
// Source  one-shot all-reduce with LL flags: NCCL, TensorRT-LLM; sweeping instead of emptying is ours.
#pragma once

#include "gpu/device/peers.h"
#include "gpu/device/stream.h"

namespace quire::gpu {

inline constexpr unsigned kMostRanks = 8;

// Of a rank: how many columns of each matrix.
struct Columns {
  static constexpr unsigned kMost = 3;
  std::uint32_t of[kMost] = {};

  constexpr std::uint32_t width() const { return of[0] + of[1] + of[2]; }
};

// Among those of all ranks, of column c of a rank.
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

inline constexpr std::uint32_t kFirstEpoch = 2;  // no epoch is 0, and neighbours differ in their lowest bit
constexpr std::uint32_t epoch_behind(std::uint32_t epoch) { return epoch == 0xffffffffu ? kFirstEpoch : epoch + 1; }
// Twice in 2^31 epochs, of an even and an odd one: the box of the other kind is swept before it is used again.
constexpr bool sweeps(std::uint32_t epoch) { return (epoch & 0x7ffffffeu) == 0x7ffffffeu; }

// In LL words: where those of a sender begin among a rank's boxes.
constexpr std::size_t box_at(std::uint32_t epoch, std::uint32_t num_ranks, std::uint32_t sender, std::uint32_t box) {
  return (std::size_t{epoch % 2} * num_ranks + sender) * box;
}
constexpr std::size_t num_ll_words(std::uint32_t num_ranks, std::uint32_t box) {
  return std::size_t{2} * num_ranks * box;
}

struct ExchangeArgs {
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kMostBlocks = 32;

  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 0;
  std::uint32_t first = 0;  // of a message that is longer than a box, the words from here on
  std::uint32_t count = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t box = 0;             // LL words
  LlWord* boxes[kMostRanks] = {};    // of every rank
  std::uint32_t* epoch = nullptr;    // the rank's own
  std::uint32_t* arrived = nullptr;  // 0 between kernels
};

class Correspondence {
 public:
  QUIRE_DEVICE explicit Correspondence(const ExchangeArgs& args) : a_(args), epoch_(*args.epoch) {
    if (sweeps(epoch_)) sweep();
  }

  // body(i) for each of the thread's words.
  template <typename Body>
  QUIRE_DEVICE void for_words(const Body& body) const {
    for (std::uint32_t i = first(); i < a_.count; i += stride()) body(i);
  }
  QUIRE_DEVICE void tell_all(std::uint32_t i, float x) const {
    for (std::uint32_t to = 0; to < a_.num_ranks; ++to) {
      if (to != a_.rank) post(a_.boxes[to] + box_at(epoch_, a_.num_ranks, a_.rank, a_.box) + i, {bits_of(x), epoch_});
    }
  }
  // What another rank told.
  QUIRE_DEVICE float told_by(std::uint32_t sender, std::uint32_t i) const {
    const LlWord* at = a_.boxes[a_.rank] + box_at(epoch_, a_.num_ranks, sender, a_.box) + i;
    LlWord ll_word = look(at);
    for (unsigned looks = 1; ll_word.epoch != epoch_; ++looks) {
      pause(looks);
      ll_word = look(at);
    }
    return f32_of_bits(ll_word.data);
  }
  // Met by all threads of the block.
  QUIRE_DEVICE void end() const {
    if (last_to_arrive(a_.arrived, a_.num_blocks) && thread() == 0) *a_.epoch = epoch_behind(epoch_);
  }

 private:
  QUIRE_DEVICE std::uint32_t first() const { return block().x * ExchangeArgs::kThreads + thread(); }
  QUIRE_DEVICE std::uint32_t stride() const { return a_.num_blocks * ExchangeArgs::kThreads; }
  // Before the block posts anything: whoever has this block's LL words of now, and posts for the next epoch, comes
  // behind it.
  QUIRE_DEVICE void sweep() const {
    LlWord* other = a_.boxes[a_.rank] + box_at(epoch_ + 1, a_.num_ranks, 0, a_.box);
    for (std::uint32_t i = first(); i < a_.num_ranks * a_.box; i += stride()) post(other + i, {});
    post_in_order();
    sync_block();
  }

  const ExchangeArgs& a_;
  const std::uint32_t epoch_;
};

struct AllReduce {
  struct Args {
    ExchangeArgs exchange;
    const float* x = nullptr;
    float* out = nullptr;  // may be x
  };
  static constexpr unsigned kThreads = ExchangeArgs::kThreads;
  static constexpr bool kMeetsPeers = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const Correspondence ll_words(a.exchange);
    const float* x = a.x + a.exchange.first;
    float* out = a.out + a.exchange.first;
    ll_words.for_words([&](std::uint32_t i) { ll_words.tell_all(i, x[i]); });
    ll_words.for_words([&](std::uint32_t i) {
      float sum = 0.0f;
      for (std::uint32_t rank = 0; rank < a.exchange.num_ranks; ++rank) {
        const float of_rank = rank == a.exchange.rank ? x[i] : ll_words.told_by(rank, i);
        sum = rank == 0 ? of_rank : sum + of_rank;
      }
      out[i] = sum;
    });
    ll_words.end();
  }
};

struct AllGather {
  struct Args {
    ExchangeArgs exchange;
    const float* part = nullptr;
    Columns columns;  // of a rank
    bool adds = false;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = ExchangeArgs::kThreads;
  static constexpr bool kMeetsPeers = true;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const Correspondence ll_words(a.exchange);
    const float* part = a.part + a.exchange.first;
    const std::uint32_t width = a.columns.width();
    ll_words.for_words([&](std::uint32_t i) { ll_words.tell_all(i, part[i]); });
    ll_words.for_words([&](std::uint32_t i) {
      const std::uint32_t row = (a.exchange.first + i) / width;
      const std::uint32_t column = (a.exchange.first + i) % width;
      float* out = a.out + std::size_t{row} * width * a.exchange.num_ranks;
      for (std::uint32_t rank = 0; rank < a.exchange.num_ranks; ++rank) {
        const float x = rank == a.exchange.rank ? part[i] : ll_words.told_by(rank, i);
        float& to = out[gathered_column(a.columns, a.exchange.num_ranks, rank, column)];
        to = a.adds ? to + x : x;
      }
    });
    ll_words.end();
  }
};

// A block's y is the rank whose part it places.
struct PlaceGathered {
  struct Args {
    const float* all = nullptr;
    std::uint32_t count = 0;  // of a rank
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
