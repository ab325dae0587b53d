// Rope, and storing of K and V, with the bits of the CPU. Equations: core/backend/step_ops.h; stored codes: kv_codes.h.
//   RopeStore    norms and rotates heads of q and k; stores K and V of all types but int4
//   SetAside     int4: copies a group that the step before left unfinished, so that StoreGroups and attention find it
//                as it was
//   StoreGroups  int4: stores groups that are now complete into their blocks, and the rows of an unfinished one into
//                the residual group
// Shape   qkv [T, (H + 2 G) D].
// Source  ours.
#pragma once

#include "gpu/kernels/batch_rows.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

// One warp per row and head. grid.x: rows, grid.y: heads of q and of k.
struct RopeStore {
  struct Args {
    AttentionView spec;
    const RowOfBatch* rows = nullptr;
    float* qkv = nullptr;
    KvView kv;
  };
  static constexpr unsigned kThreads = kWarp;

  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const RowOfBatch& row = a.rows[block().x];
    if (row.slot == RowOfBatch::kNobody) return;
    const AttentionView& spec = a.spec;
    const std::uint32_t head = block().y;
    float* x = a.qkv + std::size_t{block().x} * spec.width() + head * spec.head_dim;
    const bool is_key = head >= spec.num_heads;
    rotate(spec, is_key ? spec.k_norm : spec.q_norm, row.position, x);
    sync_block();
    if (!is_key && spec.q_scale != nullptr) {
      const float factor = spec.q_scale[row.position];
      for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) x[d] = x[d] * factor;
    }
    if (!is_key) return;
    float* v = x + spec.num_kv_heads * spec.head_dim;
    if (spec.k_factor != 1.0f) multiply(x, spec.k_factor, spec.head_dim);
    if (spec.v_factor != 1.0f) multiply(v, spec.v_factor, spec.head_dim);
    if (a.kv.layout.type == backend::KvType::kInt4) return;
    store(a.kv.layout, a.kv.group(head - spec.num_heads, row.slot), row.slot, x, v);
  }

 private:
  QUIRE_DEVICE static void multiply(float* x, float factor, std::uint32_t count) {
    for (std::uint32_t d = thread(); d < count; d += kThreads) x[d] = x[d] * factor;
    sync_block();
  }
  QUIRE_DEVICE static void rotate(const AttentionView& spec, const NormView& norm, std::uint32_t position, float* x) {
    const bool norms_last = spec.norms_after_rope;
    if (norm.scale != nullptr && !norms_last) norm_head(spec.head_dim, norm, x);
    for (std::uint32_t i = thread(); i < spec.half; i += kThreads) {
      const float cosine = spec.cosines[std::size_t{position} * spec.half + i];
      const float sine = spec.sines[std::size_t{position} * spec.half + i];
      const float low = x[i];
      const float high = x[spec.half + i];
      x[i] = fma(-high, sine, low * cosine);
      x[spec.half + i] = fma(low, sine, high * cosine);
    }
    if (norm.scale == nullptr || !norms_last) return;
    sync_block();
    norm_head(spec.head_dim, norm, x);
  }

  QUIRE_DEVICE static void norm_head(std::uint32_t head_dim, const NormView& norm, float* x) {
    const float factor = norm_factor_of_warp(x, head_dim, norm.eps);
    sync_block();
    for (std::uint32_t d = thread(); d < head_dim; d += kThreads) x[d] = x[d] * factor * norm.scale[d];
    sync_block();
  }

  QUIRE_DEVICE static void store(const KvLayout& layout, std::byte* group, std::uint32_t slot, const float* k,
                                 const float* v) {
    float k_scale = 0.0f;
    float v_scale = 0.0f;
    if (layout.type == backend::KvType::kInt8) {
      k_scale = quotient(largest_size(k, layout.head_dim), 127.0f);
      v_scale = quotient(largest_size(v, layout.head_dim), 127.0f);
      if (thread() == 0) {
        reinterpret_cast<float*>(group + layout.k_scales_at())[slot % KvLayout::kGroup] = k_scale;
        reinterpret_cast<float*>(group + layout.v_scales_at())[slot % KvLayout::kGroup] = v_scale;
      }
    }
    for (std::uint32_t d = thread(); d < layout.width(); d += kThreads) {
      const bool is_there = d < layout.head_dim;
      store_code(layout.type, group, layout.k_place(slot, d), is_there ? k[d] : 0.0f, k_scale);
      store_code(layout.type, group + layout.code_bytes(), layout.v_place(slot, d), is_there ? v[d] : 0.0f, v_scale);
    }
  }

  // Largest magnitude, by a warp; NaN if a number is NaN or infinite. The bits of magnitudes order like integers.
  QUIRE_DEVICE static float largest_size(const float* x, std::uint32_t count) {
    std::uint32_t largest = 0;
    for (std::uint32_t i = thread(); i < count; i += kThreads) {
      const std::uint32_t size = bits_of(x[i]) & 0x7fffffffu;
      largest = size > largest ? size : largest;
    }
    for (unsigned half = kWarp / 2; half > 0; half /= 2) {
      const std::uint32_t other = bits_of(shuffle_xor(f32_of_bits(largest), half));
      largest = other > largest ? other : largest;
    }
    return largest < 0x7f800000u ? f32_of_bits(largest) : kv_nan();
  }
};

// A group of 16 positions in which a sequence has rows.
struct GroupOfStep {
  std::uint32_t start = 0;           // its first position
  std::uint32_t first_row = 0;       // first row of the sequence
  std::uint32_t first_position = 0;  // its position; earlier ones of the group are in the residual group
  std::uint32_t end = 0;             // one behind the sequence's last position
  std::uint32_t residual_group = 0;

  QUIRE_DEVICE bool is_whole() const { return start + KvLayout::kGroup <= end; }
};

// grid.x: groups of the step, grid.y: kv heads.
struct SetAside {
  struct Args {
    AttentionView spec;
    const GroupOfStep* groups = nullptr;
    KvView kv;
  };
  static constexpr unsigned kThreads = 128;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const GroupOfStep& group = a.groups[block().x];
    if (group.start >= group.first_position) return;
    const std::uint32_t count = (group.first_position - group.start) * 2 * a.spec.head_dim;
    const float* from = a.kv.open_row(group.residual_group, block().y, 0);
    float* to = a.kv.found_row(group.residual_group, block().y, 0);
    for (std::uint32_t i = thread(); i < count; i += kThreads) to[i] = from[i];
  }
};

// Runs after SetAside. grid.x: groups of the step, grid.y: kv heads.
struct StoreGroups {
  struct Args {
    AttentionView spec;
    const RowOfBatch* rows = nullptr;
    const GroupOfStep* groups = nullptr;
    const float* qkv = nullptr;
    KvView kv;
  };
  static constexpr unsigned kThreads = 128;
  static constexpr std::uint32_t kMostDims = 512;
  static constexpr std::size_t kSharedBytes = (kMostDims + KvLayout::kGroup) * sizeof(Steps);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    const GroupOfStep& group = a.groups[block().x];
    if (group.is_whole()) {
      store(a, group, reinterpret_cast<Steps*>(shared));
    } else {
      keep_open(a, group);
    }
  }

 private:
  QUIRE_DEVICE static OwnRow row_of(const Args& a, const GroupOfStep& group, std::uint32_t position) {
    return own_row(a.spec, a.kv, a.qkv, a.rows[group.first_row], block().y, position);
  }

  QUIRE_DEVICE static void keep_open(const Args& a, const GroupOfStep& group) {
    const std::uint32_t first = group.start < group.first_position ? group.first_position : group.start;
    for (std::uint32_t position = first; position < group.end; ++position) {
      const OwnRow row = row_of(a, group, position);
      float* to = a.kv.open_row(group.residual_group, block().y, position);
      for (std::uint32_t d = thread(); d < a.spec.head_dim; d += kThreads) {
        to[d] = row.k[d];
        to[a.spec.head_dim + d] = row.v[d];
      }
    }
  }

  QUIRE_DEVICE static void store(const Args& a, const GroupOfStep& group, Steps* of_k) {
    const KvLayout& layout = a.kv.layout;
    Steps* of_v = of_k + kMostDims;
    find_k_steps(a, group, of_k);
    find_v_steps(a, group, of_v);
    sync_block();
    // The group's block: that of a row of this step in the group.
    const std::uint32_t first = group.start < group.first_position ? group.first_position : group.start;
    const std::uint32_t slot = a.rows[group.first_row + (first - group.first_position)].slot;
    std::byte* to = a.kv.group(block().y, slot);
    auto* k_steps = reinterpret_cast<std::uint16_t*>(to + layout.k_scales_at());
    auto* v_steps = reinterpret_cast<std::uint16_t*>(to + layout.v_scales_at());
    const std::uint32_t width = layout.width();
    for (std::uint32_t d = thread(); d < width; d += kThreads) {
      k_steps[d] = of_k[d].step;
      k_steps[width + d] = of_k[d].lowest;
    }
    if (thread() < KvLayout::kGroup) {
      v_steps[thread()] = of_v[thread()].step;
      v_steps[KvLayout::kGroup + thread()] = of_v[thread()].lowest;
    }
    auto* k_words = reinterpret_cast<std::uint32_t*>(to);
    auto* v_words = reinterpret_cast<std::uint32_t*>(to + layout.code_bytes());
    for (std::uint32_t i = thread(); i < width / kTileInputs * kWarp; i += kThreads) {
      store_words(a, group, i, of_k, of_v, k_words[i], v_words[i]);
    }
  }

  // A lane's eight codes of a tile of K, and of V.
  QUIRE_DEVICE static void store_words(const Args& a, const GroupOfStep& group, std::uint32_t i, const Steps* of_k,
                                       const Steps* of_v, std::uint32_t& k_word, std::uint32_t& v_word) {
    const std::uint32_t lane = i % kWarp;
    const std::uint32_t tile = i / kWarp * kTileInputs;
    std::uint32_t k_codes = 0;
    std::uint32_t v_codes = 0;
    for (std::uint32_t place = 0; place < 8; ++place) {
      const std::uint32_t output = lane / 4 + place / 2 % 2 * 8;
      const std::uint32_t input = lane % 4 * 2 + place % 2 + place / 4 * 8;
      const std::uint32_t k_d = tile + input;
      if (k_d < a.spec.head_dim) {
        k_codes |= of_k[k_d].code_of(row_of(a, group, group.start + output).k[k_d]) << int4_shift(place);
      }
      const std::uint32_t v_d = tile + output;
      if (v_d < a.spec.head_dim) {
        v_codes |= of_v[input].code_of(row_of(a, group, group.start + input).v[v_d]) << int4_shift(place);
      }
    }
    k_word = k_codes;
    v_word = v_codes;
  }

  QUIRE_DEVICE static void find_k_steps(const Args& a, const GroupOfStep& group, Steps* steps) {
    for (std::uint32_t d = thread(); d < a.kv.layout.width(); d += kThreads) {
      Extent extent;
      for (std::uint32_t t = 0; t < KvLayout::kGroup; ++t) {
        extent.take(d < a.spec.head_dim ? row_of(a, group, group.start + t).k[d] : 0.0f);
      }
      steps[d] = steps_of(extent);
    }
  }

  // One warp per position.
  QUIRE_DEVICE static void find_v_steps(const Args& a, const GroupOfStep& group, Steps* steps) {
    for (std::uint32_t t = thread() / kWarp; t < KvLayout::kGroup; t += kThreads / kWarp) {
      const float* v = row_of(a, group, group.start + t).v;
      Extent extent;
      for (std::uint32_t d = thread() % kWarp; d < a.spec.head_dim; d += kWarp) extent.take(v[d]);
      for (unsigned half = kWarp / 2; half > 0; half /= 2) {
        const float low = shuffle_xor(extent.low, half);
        const float high = shuffle_xor(extent.high, half);
        const bool finite = shuffle_xor(extent.finite ? 1.0f : 0.0f, half) != 0.0f;
        extent.low = low < extent.low ? low : extent.low;
        extent.high = high > extent.high ? high : extent.high;
        extent.finite = extent.finite && finite;
      }
      if (thread() % kWarp == 0) steps[t] = steps_of(extent);
    }
  }
};

// Lists of copies within the cache, at most kMostKvCopies a launch, in order: a thread has the same bytes of every
// copy, so that a later one reads what an earlier one wrote.
inline constexpr std::uint32_t kMostKvCopies = 64;

struct KvCopies {
  KvView kv;                    // of the first layer
  std::size_t layer_bytes = 0;  // from a layer to the next in a block
  std::uint32_t count = 0;
  struct {
    std::uint32_t from;
    std::uint32_t to;
  } each[kMostKvCopies] = {};
};

// K and V of rows, in layers alike; not int4. grid.x: layers, grid.y: kv heads.
struct CopyKvRows {
  using Args = KvCopies;
  static constexpr unsigned kThreads = kWarp;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    QUIRE_ROLLED for (std::uint32_t i = 0; i < a.count; ++i) copy(a, a.each[i].from, a.each[i].to);
  }

 private:
  QUIRE_DEVICE static void copy(const KvCopies& a, std::uint32_t from_slot, std::uint32_t to_slot) {
    const KvLayout& layout = a.kv.layout;
    const std::size_t layer = block().x * a.layer_bytes;
    const std::byte* from = a.kv.group(block().y, from_slot) + layer;
    std::byte* to = a.kv.group(block().y, to_slot) + layer;
    for (std::uint32_t d = thread(); d < layout.width(); d += kThreads) {
      copy_code(layout.type, from, layout.k_place(from_slot, d), to, layout.k_place(to_slot, d));
      copy_code(layout.type, from + layout.code_bytes(), layout.v_place(from_slot, d), to + layout.code_bytes(),
                layout.v_place(to_slot, d));
    }
    if (layout.type != backend::KvType::kInt8 || thread() != 0) return;
    for (const std::size_t scales : {layout.k_scales_at(), layout.v_scales_at()}) {
      reinterpret_cast<float*>(to + scales)[to_slot % KvLayout::kGroup] = int8_scale_at(from + scales, from_slot);
    }
  }
};

// Whole blocks of the cache, which begins at kv.numbers. grid.x: pieces of a block's bytes.
struct CopyKvBlocks {
  using Args = KvCopies;
  using Word = std::uint64_t;
  static constexpr unsigned kThreads = 256;
  static constexpr std::size_t kPieceBytes = kThreads * sizeof(Word);
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::size_t at = block().x * kPieceBytes + thread() * sizeof(Word);
    const std::size_t stride = a.kv.layout.block_stride;
    if (at >= stride) return;
    std::byte* const first = a.kv.numbers + at;
    QUIRE_ROLLED for (std::uint32_t i = 0; i < a.count; ++i) {
      const std::byte* from = first + a.each[i].from * stride;
      std::byte* to = first + a.each[i].to * stride;
      *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(from);
    }
  }
};

}  // namespace quire::gpu
