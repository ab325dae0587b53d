// Exact radix select by one thread block: finds where in a row, likeliest first, a count or a mass is reached, as
// core/sample/filters.h and logprob.h do on the host.
// Steps   First bins by distance from the best value, in 64ths, which spreads a row over the bins. The values up to the
//         target's bin are then listed in shared memory, if they fit, and only they are read from there on. Then bins
//         by the digits of a key, 11 bits at a time, the highest first; every step bins the values that share the
//         digits found so far.
// Order   none: bins hold integers. The order of the listed values is arbitrary, and nothing depends on it.
// Shape   bins of 64 bits in two words: the lower one wraps, and the thread that makes it wrap adds 1 to the upper one.
// Thread  called by all threads of the block; results are the same in all of them.
// Source  filters.h. The first digit and the list are ours: with the bits of a float alone most of a row falls into ten
//         bins.
#pragma once

#include "core/sample/filters.h"
#include "core/sample/sampler.h"
#include "gpu/device/tally.h"
#include "gpu/kernels/choose/choose_rows.h"

namespace quire::gpu {

inline constexpr unsigned kChooseThreads = 512;
inline constexpr unsigned kDigitBits = 11;
inline constexpr std::uint32_t kBins = 1u << kDigitBits;
inline constexpr std::uint32_t kListed = 2048;

// Shared memory of a block that samples.
struct ChooseWork {
  std::uint64_t* slots;  // [warps]
  std::uint64_t* left;   // rest of the target in the bin where it lies
  std::uint32_t* lower;  // [kBins]
  std::uint32_t* upper;
  float* values;  // [kListed]
  std::uint32_t* tokens;
  float* top_values;  // [kMaxTop]
  std::uint32_t* top_tokens;
  std::uint32_t* count;
  std::uint32_t* bin;

  static constexpr std::size_t kBytes = (kChooseThreads / kWarp + 1) * sizeof(std::uint64_t) +
                                        (2 * kBins + 2 * kListed + 2 * sample::kMaxTop + 2) * sizeof(std::uint32_t);

  QUIRE_DEVICE explicit ChooseWork(std::byte* shared) {
    slots = reinterpret_cast<std::uint64_t*>(shared);
    left = slots + kChooseThreads / kWarp;
    lower = reinterpret_cast<std::uint32_t*>(left + 1);
    upper = lower + kBins;
    values = reinterpret_cast<float*>(upper + kBins);
    tokens = reinterpret_cast<std::uint32_t*>(values + kListed);
    top_values = reinterpret_cast<float*>(tokens + kListed);
    top_tokens = reinterpret_cast<std::uint32_t*>(top_values + sample::kMaxTop);
    count = top_tokens + sample::kMaxTop;
    bin = count + 1;
  }
};

// Values to search: a row's z, or the list.
struct Values {
  const float* logits = nullptr;
  std::uint32_t vocab = 0;
  float highest = 0.0f;  // 0 with temperature 1: z is the logit
  float temperature = 1.0f;
  bool is_listed = false;
  std::uint32_t num_listed = 0;

  QUIRE_DEVICE float z(std::uint32_t token) const { return sample::z_of(logits[token], highest, temperature); }

  // body(value, token). A thread loads several values of a row at a time: a block alone would wait for each.
  static constexpr std::uint32_t kAtOnce = 8;
  template <typename Body>
  QUIRE_DEVICE void each(const ChooseWork& work, const Body& body) const {
    if (is_listed) {
      for (std::uint32_t i = thread(); i < num_listed; i += kChooseThreads) body(work.values[i], work.tokens[i]);
      return;
    }
    for (std::uint32_t first = thread(); first < vocab; first += kAtOnce * kChooseThreads) {
      float read[kAtOnce];
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const std::uint32_t token = first + i * kChooseThreads;
        read[i] = token < vocab ? logits[token] : 0.0f;
      }
      for (std::uint32_t i = 0; i < kAtOnce; ++i) {
        const std::uint32_t token = first + i * kChooseThreads;
        if (token < vocab) body(sample::z_of(read[i], highest, temperature), token);
      }
    }
  }
};

// Order by z, of values of at least `from`, by count or by mass. Ties are kept together.
struct ByZ {
  static constexpr unsigned kKeyBits = 31;
  float from = 0.0f;
  bool by_mass = false;

  QUIRE_DEVICE bool counts(float z) const { return z >= from; }
  QUIRE_DEVICE float distance(float z) const { return -z; }
  QUIRE_DEVICE std::uint64_t key(float z, std::uint32_t) const { return sample::key_of(z); }
  QUIRE_DEVICE std::uint64_t amount(float z) const { return by_mass ? sample::mass_of(sample::exp_f32(z)) : 1; }
};

// Order by distance from the mean z, nearest first, of values of at least `from`, by mass.
struct ByDistance {
  static constexpr unsigned kKeyBits = 31;
  float from = 0.0f;
  float center = 0.0f;

  QUIRE_DEVICE bool counts(float z) const { return z >= from; }
  QUIRE_DEVICE float distance(float z) const { return sample::distance_of(z, center); }
  QUIRE_DEVICE std::uint64_t key(float z, std::uint32_t) const { return sample::key_of(distance(z)); }
  QUIRE_DEVICE std::uint64_t amount(float z) const { return sample::mass_of(sample::exp_f32(z)); }
};

// Order by logit, by count; the lowest id of equal ones first, so that every key occurs once.
struct ByLogit {
  static constexpr unsigned kTokenBits = 20;
  static_assert(sample::kMaxVocab <= std::size_t{1} << kTokenBits);
  static constexpr unsigned kKeyBits = 32 + kTokenBits;
  float highest = 0.0f;

  QUIRE_DEVICE bool counts(float) const { return true; }
  QUIRE_DEVICE float distance(float logit) const { return highest - logit; }
  QUIRE_DEVICE std::uint64_t key(float logit, std::uint32_t token) const {
    return std::uint64_t{~rising_bits(logit)} << kTokenBits | token;
  }
  QUIRE_DEVICE std::uint64_t amount(float) const { return 1; }
};

// Key at which the target is reached. is_there false: there was no target.
struct Selected {
  bool is_there = false;
  std::uint64_t key = 0;
};

inline constexpr std::uint64_t kNoTarget = ~std::uint64_t{0};

// target_of(amount of all) gives the target, at most that amount, or kNoTarget. Afterwards `values` may be the list,
// which has every value up to the key.
template <typename By, typename TargetOf>
QUIRE_DEVICE Selected select(Values& values, const By& by, const TargetOf& target_of, const ChooseWork& work);

// Parts of select().
struct Select {
  // Bin of the first digit: rises with the distance.
  QUIRE_DEVICE static std::uint32_t first_digit(float distance) {
    const float digit = distance * 64.0f;
    return digit < static_cast<float>(kBins - 1) ? static_cast<std::uint32_t>(digit) : kBins - 1;
  }

  QUIRE_DEVICE static void empty_bins(const ChooseWork& work) {
    for (std::uint32_t i = thread(); i < kBins; i += kChooseThreads) {
      work.lower[i] = 0;
      work.upper[i] = 0;
    }
    sync_block();
  }
  QUIRE_DEVICE static void add(const ChooseWork& work, std::uint32_t bin, std::uint64_t amount) {
    const auto low = static_cast<std::uint32_t>(amount);
    const std::uint32_t before = add_to(&work.lower[bin], low);
    const auto high = static_cast<std::uint32_t>(amount >> 32) + (before + low < low ? 1u : 0u);
    if (high != 0) add_to(&work.upper[bin], high);
  }
  QUIRE_DEVICE static std::uint64_t amount_in(const ChooseWork& work, std::uint32_t bin) {
    return std::uint64_t{work.upper[bin]} << 32 | work.lower[bin];
  }

  struct Found {
    bool is_there = false;
    std::uint32_t bin = 0;
    std::uint64_t rest = 0;  // of the target, inside the bin
  };
  // The first bin at which the sum of all bins up to it reaches target_of(amount in all bins), which is at most that
  // amount, or kNoTarget. All threads of the block call it and get the same result.
  template <typename TargetOf>
  QUIRE_DEVICE static Found find_bin(const TargetOf& target_of, const ChooseWork& work) {
    constexpr std::uint32_t kOwn = kBins / kChooseThreads;
    const std::uint32_t first = thread() * kOwn;
    sync_block();
    std::uint64_t own = 0;
    for (std::uint32_t i = 0; i < kOwn; ++i) own += amount_in(work, first + i);
    std::uint64_t before = sum_of_lanes_before(own);
    if (thread() % kWarp == kWarp - 1) work.slots[thread() / kWarp] = before + own;
    sync_block();
    std::uint64_t all = 0;
    for (unsigned warp = 0; warp < kChooseThreads / kWarp; ++warp) {
      if (warp < thread() / kWarp) before += work.slots[warp];
      all += work.slots[warp];
    }
    const std::uint64_t target = target_of(all);
    if (target != kNoTarget && (thread() == 0 || before < target) && before + own >= target) {
      std::uint32_t bin = first;
      for (; before + amount_in(work, bin) < target; ++bin) before += amount_in(work, bin);
      *work.bin = bin;
      *work.left = target - before;
    }
    sync_block();
    return {target != kNoTarget, *work.bin, *work.left};
  }

  // Makes `values` the list of those that keep(value) accepts, if they fit.
  template <typename Keep>
  QUIRE_DEVICE static void list(Values& values, const Keep& keep, const ChooseWork& work) {
    if (values.is_listed) return;
    if (thread() == 0) *work.count = 0;
    sync_block();
    values.each(work, [&](float value, std::uint32_t token) {
      if (!keep(value) || look_at(work.count) > kListed) return;
      const std::uint32_t at = add_to(work.count, 1);
      if (at >= kListed) return;
      work.values[at] = value;
      work.tokens[at] = token;
    });
    sync_block();
    values.num_listed = *work.count;
    values.is_listed = values.num_listed <= kListed;
  }
};

template <typename By, typename TargetOf>
QUIRE_DEVICE Selected select(Values& values, const By& by, const TargetOf& target_of, const ChooseWork& work) {
  Select::empty_bins(work);
  values.each(work, [&](float value, std::uint32_t) {
    if (by.counts(value)) Select::add(work, Select::first_digit(by.distance(value)), by.amount(value));
  });
  const Select::Found first = Select::find_bin(target_of, work);
  if (!first.is_there) return {};
  Select::list(
      values, [&](float value) { return by.counts(value) && Select::first_digit(by.distance(value)) <= first.bin; },
      work);

  std::uint64_t key = 0;
  std::uint64_t target = first.rest;
  unsigned low = By::kKeyBits;  // bits of the key from here on are known
  QUIRE_ROLLED while (low > 0) {
    const unsigned bits = low < kDigitBits ? low : kDigitBits;
    const std::uint64_t known = key >> low;
    const unsigned shift = low - bits;
    Select::empty_bins(work);
    values.each(work, [&](float value, std::uint32_t token) {
      if (!by.counts(value) || Select::first_digit(by.distance(value)) != first.bin) return;
      const std::uint64_t its = by.key(value, token);
      if (its >> low != known) return;
      Select::add(work, static_cast<std::uint32_t>(its >> shift) & ((1u << bits) - 1), by.amount(value));
    });
    const Select::Found digit = Select::find_bin([target](std::uint64_t) { return target; }, work);
    key |= std::uint64_t{digit.bin} << shift;
    target = digit.rest;
    low = shift;
  }
  return {true, key};
}

// kept_range() of filters.h, of the values' z.
struct KeptOf {
  QUIRE_DEVICE static sample::KeptRange range(const sample::Params& params, Values& values, const ChooseWork& work) {
    sample::KeptRange range;
    if (params.min_p > 0.0f) range.lowest = sample::log_f32(params.min_p);
    if (params.top_k > 0 && static_cast<std::uint32_t>(params.top_k) < values.vocab) {
      const auto top_k = static_cast<std::uint64_t>(params.top_k);
      const auto target = [top_k](std::uint64_t all) { return all > top_k ? top_k : kNoTarget; };
      narrow(select(values, ByZ{seen_from(range.lowest), false}, target, work), range);
    }
    if (params.top_p < 1.0f) {
      const float top_p = params.top_p;
      const auto target = [top_p](std::uint64_t all) { return sample::mass_aimed_at(top_p, all); };
      narrow(select(values, ByZ{seen_from(range.lowest), true}, target, work), range);
    }
    return params.typical_p < 1.0f ? typical(params.typical_p, range.lowest, values, work) : range;
  }

 private:
  QUIRE_DEVICE static float seen_from(float lowest) {
    return lowest > sample::kLowestThatMatters ? lowest : sample::kLowestThatMatters;
  }
  QUIRE_DEVICE static void narrow(const Selected& selected, sample::KeptRange& range) {
    if (selected.is_there) range.lowest = -f32_of_bits(static_cast<std::uint32_t>(selected.key));
  }

  QUIRE_DEVICE static sample::KeptRange typical(float typical_p, float lowest, Values& values, const ChooseWork& work) {
    const float from = seen_from(lowest);
    std::uint64_t mass = 0;
    std::uint64_t moment = 0;
    values.each(work, [&](float z, std::uint32_t) {
      if (!(z >= from)) return;
      const float weight = sample::exp_f32(z);
      mass += sample::mass_of(weight);
      moment += sample::mass_of(weight * -z);
    });
    mass = sum_of_block<kChooseThreads>(mass, work.slots);
    moment = sum_of_block<kChooseThreads>(moment, work.slots);
    const float center = sample::mean_of(moment, mass);
    const auto target = [typical_p](std::uint64_t all) {
      const std::uint64_t aimed = sample::mass_aimed_at(typical_p, all);
      return aimed > 1 ? aimed : 1;
    };
    const Selected selected = select(values, ByDistance{from, center}, target, work);
    const float distance = f32_of_bits(static_cast<std::uint32_t>(selected.key));

    std::uint64_t highest = 0;  // as rising_bits(); lowest_kept as their complement
    std::uint64_t lowest_kept = 0;
    values.each(work, [&](float z, std::uint32_t) {
      if (!(z >= from) || sample::distance_of(z, center) > distance) return;
      const std::uint32_t bits = rising_bits(z);
      if (bits > highest) highest = bits;
      if (~bits > lowest_kept) lowest_kept = ~bits;
    });
    highest = most_of_block<kChooseThreads>(highest, work.slots);
    lowest_kept = most_of_block<kChooseThreads>(lowest_kept, work.slots);
    return {f32_of_rising(~static_cast<std::uint32_t>(lowest_kept)),
            f32_of_rising(static_cast<std::uint32_t>(highest))};
  }
};

}  // namespace quire::gpu
