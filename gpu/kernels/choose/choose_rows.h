// First pass of sampling, in pieces of rows, all logits rows at a time: finds the highest logits and, for a row with
// edits (core/sample/edits.h), writes a copy with the edits applied.
// Shape   logits [R, width], of which columns [0, V) are read.
// Launch  one thread block per row (grid.x) and piece of kPiece tokens (grid.y).
// Order   none: maxima of keys. A key holds the logit and the token, so that equal logits go to the lowest id.
// Source  core/sample/sampler.h; the copy is ours: log probabilities are those of the model's logits, without edits.
#pragma once

#include "gpu/device/tally.h"
#include "gpu/kernels/choose/choose_args.h"

namespace quire::gpu {

// A row with a logit that is not below this is not finite.
inline constexpr float kNoLogit = std::numeric_limits<float>::infinity();

// Integers in the order of the floats; both zeros are equal.
QUIRE_DEVICE std::uint32_t rising_bits(float x) {
  const std::uint32_t bits = bits_of(x + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
QUIRE_DEVICE float f32_of_rising(std::uint32_t bits) {
  return f32_of_bits((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// A higher key for a likelier token, and for the lower id of equal ones. Infinity and NaN are above everything.
QUIRE_DEVICE std::uint64_t likely_key(float x, std::uint32_t token) {
  return std::uint64_t{rising_bits(x < kNoLogit ? x : kNoLogit)} << 32 | static_cast<std::uint32_t>(~token);
}
QUIRE_DEVICE TokenId token_of(std::uint64_t key) { return static_cast<TokenId>(~static_cast<std::uint32_t>(key)); }
QUIRE_DEVICE bool is_finite(std::uint64_t key) {
  const float x = f32_of_rising(static_cast<std::uint32_t>(key >> 32));
  return x < kNoLogit && x > -kNoLogit;
}

template <typename T>
QUIRE_DEVICE const T* at_offset(const std::byte* packed, std::size_t offset) {
  return reinterpret_cast<const T*>(packed + offset);
}

struct PrepareRows {
  struct Args {
    const std::byte* packed = nullptr;  // rows first
    const float* logits = nullptr;
    std::uint32_t width = 0;
    std::uint32_t vocab = 0;
    float* copies = nullptr;            // [copies, width]
    HighestOfPiece* highest = nullptr;  // [rows, grid.y]
    std::uint32_t num_pieces = 0;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr std::uint32_t kPiece = 4096;
  static constexpr std::size_t kSharedBytes = kThreads / kWarp * sizeof(std::uint64_t);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    auto* slots = reinterpret_cast<std::uint64_t*>(shared);
    const LogitsRowArgs& row = at_offset<LogitsRowArgs>(a.packed, 0)[block().x];
    const float* x = a.logits + std::size_t{row.logits_row} * a.width;
    const Piece piece = {block().y * kPiece,
                         a.vocab - block().y * kPiece < kPiece ? a.vocab : (block().y + 1) * kPiece};
    HighestOfPiece highest;
    highest.raw = most_of_block<kThreads>(highest_of(x, piece), slots);
    if (row.copy != LogitsRowArgs::kNoEdits) {
      float* y = a.copies + std::size_t{row.copy} * a.width;
      edit(a, row, x, piece, y);
      highest.edited = most_of_block<kThreads>(highest_of(y, piece), slots);
    }
    if (thread() == 0) a.highest[std::size_t{block().x} * a.num_pieces + block().y] = highest;
  }

 private:
  struct Piece {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    QUIRE_DEVICE bool has(TokenId token) const {
      return static_cast<std::uint32_t>(token) >= first && static_cast<std::uint32_t>(token) < last;
    }
  };

  QUIRE_DEVICE static std::uint64_t highest_of(const float* x, Piece piece) {
    std::uint64_t highest = 0;
    for (std::uint32_t i = piece.first + thread(); i < piece.last; i += kThreads) {
      const std::uint64_t key = likely_key(x[i], i);
      highest = highest > key ? highest : key;
    }
    return highest;
  }

  QUIRE_DEVICE static void edit(const Args& a, const LogitsRowArgs& row, const float* x, Piece piece, float* y) {
    const auto* allowed = at_offset<std::uint32_t>(a.packed, row.allowed);
    for (std::uint32_t i = piece.first + thread(); i < piece.last; i += kThreads) {
      const bool may = row.num_allowed == 0 || (i / 32 < row.num_allowed && (allowed[i / 32] >> i % 32 & 1u) != 0);
      y[i] = may ? x[i] : sample::kMasked;
    }
    sync_block();
    const auto* each = at_offset<sample::Edit>(a.packed, row.each);
    for (std::uint32_t i = thread(); i < row.num_each; i += kThreads) {
      const sample::Edit one = each[i];
      if (!piece.has(one.token)) continue;
      y[one.token] = sample::edited(y[one.token], one, row.repetition, row.frequency, row.presence);
    }
    sync_block();
    const auto* forbidden = at_offset<TokenId>(a.packed, row.forbidden);
    for (std::uint32_t i = thread(); i < row.num_forbidden; i += kThreads) {
      if (piece.has(forbidden[i])) y[forbidden[i]] = sample::kMasked;
    }
    sync_block();
  }
};

}  // namespace quire::gpu
