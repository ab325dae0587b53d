// The work of one matrix of every expert, cut into chunks of about the same length, the longest first: for each expert
// that has rows, some of its outputs times some of its rows. An expert's weights are read once for all of its rows.
// Owner   CpuOps; plan() holds one op's chunks.
// Thread  engine; chunks() any worker, after plan().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/backend/device_cast.h"
#include "core/cpu/experts/host_routes.h"
#include "core/cpu/linear.h"

namespace quire::cpu {

struct ExpertChunk {
  std::uint32_t expert = 0;
  Range units{};
  Range places{};
  std::size_t cost = 0;  // ProductChunks::cost(), of this part
};

class ExpertChunks {
 public:
  // Makes room for the chunks of so many experts, so that no step allocates.
  void reserve(const KernelContext& context, std::uint32_t num_experts);
  // units_of(w): those that an expert's weight w is cut into.
  template <typename UnitsOf>
  void plan(const KernelContext& context, backend::ExpertWeights weights, std::size_t part, const HostRoutes& routes,
            const UnitsOf& units_of);

  std::span<const ExpertChunk> chunks() const { return chunks_; }
  // Those of one worker's job: all of them if the work is not worth waking others for.
  std::uint32_t num_jobs() const { return is_small_ ? 1 : static_cast<std::uint32_t>(chunks_.size()); }
  std::span<const ExpertChunk> job(std::uint32_t i) const { return is_small_ ? chunks() : chunks().subspan(i, 1); }

 private:
  std::vector<ExpertChunk> chunks_;
  bool is_small_ = true;
};

inline const PackedWeight& weight_of(backend::ExpertWeights weights, std::uint32_t expert, std::size_t part) {
  return backend::device_cast<const PackedWeight>(weights[expert][part]);
}

template <typename UnitsOf>
void ExpertChunks::plan(const KernelContext& context, backend::ExpertWeights weights, std::size_t part,
                        const HostRoutes& routes, const UnitsOf& units_of) {
  const auto cost = [&](std::uint32_t expert, const Range& places) {
    return ProductChunks::cost(weight_of(weights, expert, part), places.last - places.first);
  };
  std::size_t all = 0;
  for (std::uint32_t expert = 0; expert < weights.size(); ++expert) {
    const Range places = routes.places_of(expert);
    if (places.first != places.last) all += cost(expert, places);
  }
  const std::size_t wanted = num_chunks(all, context.team.size());
  is_small_ = wanted == 1;
  chunks_.clear();
  for (std::uint32_t expert = 0; expert < weights.size(); ++expert) {
    const Range places = routes.places_of(expert);
    if (places.first == places.last) continue;
    const PackedWeight& w = weight_of(weights, expert, part);
    const auto share = static_cast<std::uint32_t>((wanted * cost(expert, places) + all - 1) / all);
    const ProductChunks cut(context, places.last - places.first, units_of(w), share);
    for (std::uint32_t i = 0; i < cut.count(); ++i) {
      const Range rows = cut.rows(i);
      const Range units = cut.units(i);
      const std::size_t part_cost =
          ProductChunks::cost(w, rows.last - rows.first) * (units.last - units.first) / units_of(w);
      chunks_.push_back({expert, units, {places.first + rows.first, places.first + rows.last}, part_cost});
    }
  }
  std::ranges::sort(chunks_, std::greater(), &ExpertChunk::cost);
}

}  // namespace quire::cpu
