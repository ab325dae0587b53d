// Rotation, and storing of K and V. Equations: core/backend/ops.h, bit for bit as on the CPU; what is stored: kv_codes.h.
//   RopeStore  heads of q and k normed and rotated; K and V of all types but int4 stored
//   SetAside   int4: a group that the step before left unfinished, put where StoreGroups and attention find it as it was
//   StoreGroups  int4: groups that are whole now into their blocks, the rows of one that is not into the open group
// Shape   qkv [T, (H + 2 G) D].
// Source  ours.
#pragma once

#include "gpu/kernels/batch_rows.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

// A block a row and head. grid.x: rows, grid.y: heads of q and of k.
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
    turn(spec, is_key ? spec.k_norm : spec.q_norm, row.position, x);
    sync_block();
    if (!is_key || a.kv.layout.type == backend::KvType::kInt4) return;
    const float* v = x + spec.num_kv_heads * spec.head_dim;
    store(a.kv.layout, a.kv.group(spec.layer, head - spec.num_heads, row.slot), row.slot, x, v);
  }

 private:
  QUIRE_DEVICE static void turn(const AttentionView& spec, const float* norm, std::uint32_t position, float* x) {
    if (norm != nullptr) {
      const float factor = norm_factor_of_warp(x, spec.head_dim, spec.norm_eps);
      sync_block();
      for (std::uint32_t d = thread(); d < spec.head_dim; d += kThreads) x[d] = x[d] * factor * norm[d];
      sync_block();
    }
    for (std::uint32_t i = thread(); i < spec.half; i += kThreads) {
      const float cosine = spec.cosines[std::size_t{position} * spec.half + i];
      const float sine = spec.sines[std::size_t{position} * spec.half + i];
      const float low = x[i];
      const float high = x[spec.half + i];
      x[i] = fma(-high, sine, low * cosine);
      x[spec.half + i] = fma(low, sine, high * cosine);
    }
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

  // By a warp; NaN where a number is a NaN or infinite. As bits, sizes are in the order of whole numbers.
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

// A group of 16 positions of a sequence that has rows in it.
struct GroupOfStep {
  std::uint32_t start = 0;           // its first position
  std::uint32_t first_row = 0;       // of the sequence, and where it stands
  std::uint32_t first_position = 0;  // earlier ones of the group are in the open group
  std::uint32_t end = 0;             // one behind the sequence's last position
  std::uint32_t open_group = 0;

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
    const float* from = a.kv.open_row(group.open_group, a.spec.layer, block().y, 0);
    float* to = a.kv.open_row(group.open_group, a.kv.layer_as_found(), block().y, 0);
    for (std::uint32_t i = thread(); i < count; i += kThreads) to[i] = from[i];
  }
};

// Behind SetAside. grid.x: groups of the step, grid.y: kv heads.
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
      float* to = a.kv.open_row(group.open_group, a.spec.layer, block().y, position);
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
    // The group's block: that of a row of the step which lies in it.
    const std::uint32_t first = group.start < group.first_position ? group.first_position : group.start;
    const std::uint32_t slot = a.rows[group.first_row + (first - group.first_position)].slot;
    std::byte* to = a.kv.group(a.spec.layer, block().y, slot);
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

  // A warp a position.
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

// A row's K and V, by slot; not int4. grid.x: layers, grid.y: kv heads.
struct CopyKvRow {
  struct Args {
    KvView kv;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
  };
  static constexpr unsigned kThreads = kWarp;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const KvLayout& layout = a.kv.layout;
    const std::byte* from = a.kv.group(block().x, block().y, a.from);
    std::byte* to = a.kv.group(block().x, block().y, a.to);
    for (std::uint32_t d = thread(); d < layout.width(); d += kThreads) {
      copy_code(layout.type, from, layout.k_place(a.from, d), to, layout.k_place(a.to, d));
      copy_code(layout.type, from + layout.code_bytes(), layout.v_place(a.from, d), to + layout.code_bytes(),
                layout.v_place(a.to, d));
    }
    if (layout.type != backend::KvType::kInt8 || thread() != 0) return;
    copy_scale(from + layout.k_scales_at(), to + layout.k_scales_at(), a);
    copy_scale(from + layout.v_scales_at(), to + layout.v_scales_at(), a);
  }

 private:
  QUIRE_DEVICE static void copy_scale(const std::byte* from, std::byte* to, const Args& a) {
    reinterpret_cast<float*>(to)[a.to % KvLayout::kGroup] = int8_scale_at(from, a.from);
  }
};

}  // namespace quire::gpu
