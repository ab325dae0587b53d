// Kernels of mixtures of experts but their products: the choice of experts, the order of rows by expert, the sums of a
// row's experts. Bits of the CPU; equations: core/backend/step_ops.h.
//   RouteRows        a row's experts and their weights
//   IndexRoutes      rows by expert, and tiles of them
//   ActivateClamped  the activation of gates and ups with a clamp
//   CombineExperts   sums of the outputs of a row's experts
// Shape   a place is a row by expert: [T·k]. A tile has up to 8 places of one expert, whose rows the tensor cores take
//         together; its rows are put at slots 8·tile and on.
// Source  ours.
#pragma once

#include "core/backend/experts.h"
#include "gpu/device/integer_matrix.h"
#include "gpu/kernels/rows.h"

namespace quire::gpu {

inline constexpr std::uint32_t kMostExperts = 512;
inline constexpr std::uint32_t kMostChosen = 32;
inline constexpr std::uint32_t kMostExpertGroups = 64;

struct ExpertTile {
  std::uint32_t expert = 0;
  std::uint32_t first_place = 0;
  std::uint32_t count = 0;  // 0: padding of a grid
};

// An expert's packed weight in device memory, as in WeightView; shape and format are those of all.
struct ExpertWeight {
  const void* numbers = nullptr;
  const float* scales = nullptr;
  const float* bias = nullptr;
  const std::uint32_t* columns = nullptr;
  bool operator==(const ExpertWeight&) const = default;
};

struct ExpertRows {
  const ExpertTile* tiles = nullptr;
  const ExpertWeight* weights = nullptr;  // [X]
};

// Tiles that `places` rows by expert may have, whatever the routers choose.
constexpr std::uint32_t most_expert_tiles(std::uint32_t num_experts, std::uint32_t places) {
  const std::uint32_t experts = places < num_experts ? places : num_experts;  // those with rows
  const std::uint32_t tiles = places / kTileRows + experts;
  return tiles < places ? tiles : places;
}

// One warp per row. grid.x: rows.
struct RouteRows {
  struct Args {
    const float* logits = nullptr;  // [T, X]
    backend::RouteRule rule{};
    const float* bias = nullptr;  // RouteVectors
    const float* scales = nullptr;
    std::uint32_t* experts = nullptr;  // [T, k], ascending in each row
    float* weights = nullptr;          // [T, k]
  };
  static constexpr unsigned kThreads = kWarp;

 private:
  static constexpr float kLowest = -__builtin_inff();

  struct Work {
    float scores[kMostExperts];
    float choice[kMostExperts];
    float groups[kMostExpertGroups];
    std::uint32_t experts[kMostChosen];
    float weights[kMostChosen];
  };
  struct Best {
    float value;
    std::uint32_t index;
  };

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    Work& work = *reinterpret_cast<Work*>(shared);
    const float* logits = a.logits + std::size_t{block().x} * a.rule.num_experts;
    for (std::uint32_t i = thread(); i < a.rule.num_experts; i += kWarp) work.scores[i] = logits[i];
    sync_block();
    if (a.rule.score == backend::RouteScore::kSparsemixer) {
      mix_sparsely(a.rule, work);
    } else {
      score(a.rule, work);
      for (std::uint32_t i = thread(); i < a.rule.num_experts; i += kWarp) {
        work.choice[i] = a.bias == nullptr ? work.scores[i] : work.scores[i] + a.bias[i];
      }
      sync_block();
      choose(a.rule, work);
      if (thread() == 0) finish(a, work);
      sync_block();
    }
    const std::size_t first = std::size_t{block().x} * a.rule.top_k;
    for (std::uint32_t i = thread(); i < a.rule.top_k; i += kWarp) {
      a.experts[first + i] = work.experts[i];
      a.weights[first + i] = work.weights[i];
    }
  }

 private:
  QUIRE_DEVICE static bool is_nan(float x) { return x != x; }
  // True if a is chosen before b of a lower index.
  QUIRE_DEVICE static bool is_higher(float a, float b) { return a > b || (is_nan(a) && !is_nan(b)); }
  QUIRE_DEVICE static float exp(float x) { return sample::exp_f32(x); }

  // The highest of those that `has` says; of equals the one of lowest index. All lanes have it.
  template <typename Has>
  QUIRE_DEVICE static Best highest(const float* values, std::uint32_t count, const Has& has) {
    Best best{kLowest, count};
    for (std::uint32_t i = thread(); i < count; i += kWarp) {
      if (has(i) && (best.index == count || is_higher(values[i], best.value))) best = {values[i], i};
    }
    for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
      const float value = shuffle_xor(best.value, mask);
      const std::uint32_t index = bits_of(shuffle_xor(f32_of_bits(best.index), mask));
      const bool is_equal = !is_higher(value, best.value) && !is_higher(best.value, value);
      if (is_higher(value, best.value) || (is_equal && index < best.index)) best = {value, index};
    }
    return best;
  }
  QUIRE_DEVICE static Best highest(const float* values, std::uint32_t count) {
    return highest(values, count, [](std::uint32_t) { return true; });
  }
  QUIRE_DEVICE static float sum(const float* values, std::uint32_t count) {
    float lane = 0.0f;
    for (std::uint32_t i = thread() % kSumLanes; i < count; i += kSumLanes) lane = lane + values[i];
    return sum_of_lanes(lane);
  }

  QUIRE_DEVICE static void score(const backend::RouteRule& rule, Work& work) {
    const std::uint32_t count = rule.num_experts;
    if (rule.score == backend::RouteScore::kSoftmax) {
      const float most = highest(work.scores, count).value;
      sync_block();
      for (std::uint32_t i = thread(); i < count; i += kWarp) work.scores[i] = exp(work.scores[i] - most);
      sync_block();
      const float total = sum(work.scores, count);
      sync_block();
      for (std::uint32_t i = thread(); i < count; i += kWarp) work.scores[i] = quotient(work.scores[i], total);
    } else if (rule.score == backend::RouteScore::kSigmoid) {
      for (std::uint32_t i = thread(); i < count; i += kWarp) {
        work.scores[i] = quotient(1.0f, 1.0f + exp(-work.scores[i]));
      }
    }
    sync_block();
  }

  QUIRE_DEVICE static float value_of_group(const backend::RouteRule& rule, const float* choice) {
    const std::uint32_t size = rule.num_experts / rule.num_groups;
    float first = kLowest;
    float second = kLowest;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (is_higher(choice[i], first)) {
        second = first;
        first = choice[i];
      } else if (is_higher(choice[i], second)) {
        second = choice[i];
      }
    }
    return rule.groups_by_highest || size == 1 ? first : first + second;
  }
  // True if fewer than top_groups others go before the group.
  QUIRE_DEVICE static bool is_among(const backend::RouteRule& rule, const float* groups, std::uint32_t group) {
    std::uint32_t before = 0;
    for (std::uint32_t other = 0; other < rule.num_groups; ++other) {
      if (other < group) before += is_higher(groups[group], groups[other]) ? 0 : 1;
      if (other > group) before += is_higher(groups[other], groups[group]) ? 1 : 0;
    }
    return before < rule.top_groups;
  }

  // The highest of choice among the experts of the highest groups, and their scores.
  QUIRE_DEVICE static void choose(const backend::RouteRule& rule, Work& work) {
    const std::uint32_t size = rule.num_experts / rule.num_groups;
    std::uint32_t open = 0;  // bit j: the lane's expert j · 32 + lane may be chosen
    if (rule.num_groups > 1) {
      for (std::uint32_t group = thread(); group < rule.num_groups; group += kWarp) {
        work.groups[group] = value_of_group(rule, work.choice + group * size);
      }
      sync_block();
    }
    for (std::uint32_t i = thread(); i < rule.num_experts; i += kWarp) {
      if (rule.num_groups == 1 || is_among(rule, work.groups, i / size)) open |= 1u << i / kWarp;
    }
    for (std::uint32_t chosen = 0; chosen < rule.top_k; ++chosen) {
      const Best best =
          highest(work.choice, rule.num_experts, [&](std::uint32_t i) { return (open >> i / kWarp & 1u) != 0; });
      if (best.index % kWarp == thread()) open &= ~(1u << best.index / kWarp);
      insert(work, chosen, best.index, work.scores[best.index]);
    }
    sync_block();
  }

  // Keeps the first `count` and another one ascending by index.
  QUIRE_DEVICE static void insert(Work& work, std::uint32_t count, std::uint32_t expert, float weight) {
    if (thread() != 0) return;
    std::uint32_t at = count;
    for (; at > 0 && work.experts[at - 1] > expert; --at) {
      work.experts[at] = work.experts[at - 1];
      work.weights[at] = work.weights[at - 1];
    }
    work.experts[at] = expert;
    work.weights[at] = weight;
  }

  // By one lane: sums over a row's experts are plain.
  QUIRE_DEVICE static void finish(const Args& a, Work& work) {
    const backend::RouteRule& rule = a.rule;
    float* weights = work.weights;
    if (rule.score == backend::RouteScore::kLogit) {
      float most = weights[0];
      for (std::uint32_t i = 1; i < rule.top_k; ++i) most = is_higher(weights[i], most) ? weights[i] : most;
      float total = 0.0f;
      for (std::uint32_t i = 0; i < rule.top_k; ++i) total = total + (weights[i] = exp(weights[i] - most));
      for (std::uint32_t i = 0; i < rule.top_k; ++i) weights[i] = quotient(weights[i], total);
    }
    if (rule.normed) {
      float total = 0.0f;
      for (std::uint32_t i = 0; i < rule.top_k; ++i) total = total + weights[i];
      const float sum_and_eps = total + rule.norm_eps;
      const float divisor = sum_and_eps < rule.norm_least ? rule.norm_least : sum_and_eps;
      for (std::uint32_t i = 0; i < rule.top_k; ++i) weights[i] = quotient(weights[i], divisor);
    }
    for (std::uint32_t i = 0; i < rule.top_k; ++i) {
      weights[i] = weights[i] * rule.scale;
      if (a.scales != nullptr) weights[i] = weights[i] * a.scales[work.experts[i]];
    }
  }

  QUIRE_DEVICE static void mix_sparsely(const backend::RouteRule& rule, Work& work) {
    const std::uint32_t count = rule.num_experts;
    for (std::uint32_t chosen = 0; chosen < rule.top_k; ++chosen) {
      const Best best = highest(work.scores, count);
      for (std::uint32_t i = thread(); i < count; i += kWarp) {
        const float logit = work.scores[i];
        const float size = logit < 0.0f ? -logit : logit;
        const bool is_far = quotient(best.value - logit, size < best.value ? best.value : size) > rule.margin;
        work.choice[i] = exp(is_far || logit == kLowest ? kLowest : logit - best.value);
      }
      sync_block();
      insert(work, chosen, best.index, quotient(1.0f, sum(work.choice, count)) * rule.scale);
      sync_block();
      if (thread() == 0) work.scores[best.index] = kLowest;
      sync_block();
    }
  }
};

// One block. A thread has an expert at a time: counts are sums of whole numbers, and rows stay in order.
struct IndexRoutes {
  struct Args {
    const std::uint32_t* experts = nullptr;  // [places]: those of row 0, of row 1, ...
    std::uint32_t num_places = 0;
    std::uint32_t num_experts = 0;
    std::uint32_t top_k = 0;
    std::uint32_t* places = nullptr;  // [places] of a row's experts, as `experts`
    std::uint32_t* rows = nullptr;    // [places]
    std::uint32_t* slots = nullptr;   // [places]
    ExpertTile* tiles = nullptr;      // [num_tiles]
    std::uint32_t num_tiles = 0;
  };
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kMinBlocks = 1;

 private:
  struct Work {
    std::uint32_t counts[kMostExperts];
    std::uint32_t first[kMostExperts];
    std::uint32_t first_tile[kMostExperts];
    std::uint32_t num_tiles;
  };

 public:
  static constexpr std::size_t kSharedBytes = sizeof(Work);

  QUIRE_DEVICE static void run(const Args& a, std::byte* shared) {
    Work& work = *reinterpret_cast<Work*>(shared);
    for (std::uint32_t expert = thread(); expert < a.num_experts; expert += kThreads) {
      std::uint32_t count = 0;
      for (std::uint32_t i = 0; i < a.num_places; ++i) count += a.experts[i] == expert ? 1 : 0;
      work.counts[expert] = count;
    }
    sync_block();
    if (thread() == 0) {
      std::uint32_t places = 0;
      std::uint32_t tiles = 0;
      for (std::uint32_t expert = 0; expert < a.num_experts; ++expert) {
        work.first[expert] = places;
        work.first_tile[expert] = tiles;
        places += work.counts[expert];
        tiles += pieces_of(work.counts[expert], kTileRows);
      }
      work.num_tiles = tiles;
    }
    sync_block();
    for (std::uint32_t expert = thread(); expert < a.num_experts; expert += kThreads) place(a, work, expert);
    for (std::uint32_t tile = work.num_tiles + thread(); tile < a.num_tiles; tile += kThreads) a.tiles[tile] = {};
  }

 private:
  QUIRE_DEVICE static void place(const Args& a, const Work& work, std::uint32_t expert) {
    const std::uint32_t first = work.first[expert];
    const std::uint32_t first_slot = work.first_tile[expert] * kTileRows;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < a.num_places; ++i) {
      if (a.experts[i] != expert) continue;
      a.places[i] = first + count;
      a.rows[first + count] = i / a.top_k;
      a.slots[first + count] = first_slot + count;
      ++count;
    }
    for (std::uint32_t done = 0; done < count; done += kTileRows) {
      const std::uint32_t left = count - done;
      a.tiles[work.first_tile[expert] + done / kTileRows] = {expert, first + done, left < kTileRows ? left : kTileRows};
    }
  }
};

// grid.x: rows by expert, grid.y: pieces of a row.
struct ActivateClamped {
  struct Args {
    const float* x = nullptr;  // [rows, 2 width]
    std::uint32_t width = 0;
    float* out = nullptr;
    backend::Clamp clamp{};
  };
  static constexpr unsigned kThreads = 256;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::size_t row = block().x;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const float* x = a.x + row * 2 * a.width;
    const float limit = a.clamp.limit;
    const float g = limit < x[i] ? limit : x[i];
    const float up = -limit > x[a.width + i] ? -limit : x[a.width + i];
    const float u = limit < up ? limit : up;
    a.out[row * a.width + i] = (u + 1.0f) * quotient(g, 1.0f + sample::exp_f32(-(a.clamp.alpha * g)));
  }
};

// grid.x: rows, grid.y: pieces of a row.
struct CombineExperts {
  struct Args {
    const float* y = nullptr;               // [places, width]
    const std::uint32_t* places = nullptr;  // [T, k]
    const float* weights = nullptr;         // [T, k]
    std::uint32_t top_k = 0;
    const float* shared = nullptr;  // [T, width] of the shared expert; null: there is none
    const float* gate = nullptr;    // [T] its logits; null: its weight is 1
    std::uint32_t width = 0;
    float* out = nullptr;
  };
  static constexpr unsigned kThreads = 128;
  QUIRE_DEVICE static void run(const Args& a, std::byte*) {
    const std::size_t row = block().x;
    const std::uint32_t i = block().y * kThreads + thread();
    if (i >= a.width) return;
    const std::uint32_t* places = a.places + row * a.top_k;
    const float* weights = a.weights + row * a.top_k;
    float sum = a.y[std::size_t{places[0]} * a.width + i] * weights[0];
    for (std::uint32_t j = 1; j < a.top_k; ++j) sum = fma(a.y[std::size_t{places[j]} * a.width + i], weights[j], sum);
    if (a.shared != nullptr) {
      const float weight = a.gate == nullptr ? 1.0f : quotient(1.0f, 1.0f + sample::exp_f32(-a.gate[row]));
      sum = fma(a.shared[row * a.width + i], weight, sum);
    }
    a.out[row * a.width + i] = sum;
  }
};

}  // namespace quire::gpu
