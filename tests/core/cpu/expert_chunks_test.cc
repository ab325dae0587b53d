// The chunks of a mixture's product: they cover every output of every row once, and threads that take them one after
// another end at about the same time.
#include "core/cpu/expert_chunks.h"

#include <algorithm>
#include <map>

#include "core/cpu/isa/select.h"
#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::expert_chunks_test {
namespace {

constexpr std::uint32_t kExperts = 16;
constexpr std::uint32_t kOfARow = 4;

// A product of rows that have experts at random, planned for so many threads. All experts have one weight.
class Planned {
 public:
  Planned(const PackedWeight& weight, std::uint32_t threads, std::uint32_t rows)
      : weight_(weight), team_(threads), routes_(rows, kExperts, kOfARow) {
    Random random(rows);
    std::vector<std::uint32_t> experts(kExperts);
    for (std::uint32_t i = 0; i < kExperts; ++i) experts[i] = i;
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::ranges::shuffle(experts, random.engine());
      std::copy_n(experts.begin(), kOfARow, routes_.experts(row).begin());
      std::ranges::sort(routes_.experts(row));
    }
    routes_.index(rows);
    const std::vector<backend::WeightList> weights(kExperts, backend::WeightList(weight));
    chunks_.reserve(context_, kExperts);
    chunks_.plan(context_, weights, 0, routes_, [&](const PackedWeight&) { return num_units(); });
  }

  std::uint32_t num_units() const { return cpu::num_units(context_.kernels, weight_.num_panels()); }
  const HostRoutes& routes() const { return routes_; }
  const ExpertChunks& chunks() const { return chunks_; }

 private:
  const PackedWeight& weight_;
  Team team_;
  RowCoder coder_{1};
  const KernelContext context_{select_kernels("auto"), team_, coder_};
  HostRoutes routes_;
  ExpertChunks chunks_;
};

std::unique_ptr<PackedWeight> weight_of_size(std::uint32_t n, std::uint32_t k) {
  Team team(1);
  const std::vector<std::uint16_t> zeros(std::size_t{n} * k);
  const backend::HostMatrix matrix{zeros.data(), Format::kBF16, n, k};
  return pack_weight({&matrix, 1}, {}, std::nullopt, team);
}

TEST(ExpertChunks, CoverEveryOutputOfEveryRowOnce) {
  const auto weight = weight_of_size(200, 64);
  for (const std::uint32_t rows : {1u, 3u, 40u, 300u}) {
    for (const std::uint32_t threads : {1u, 2u, 5u}) {
      const Planned planned(*weight, threads, rows);
      std::map<std::pair<std::uint32_t, std::uint32_t>, int> covered;  // place, unit
      for (std::uint32_t job = 0; job < planned.chunks().num_jobs(); ++job) {
        for (const ExpertChunk& chunk : planned.chunks().job(job)) {
          for (std::uint32_t place = chunk.places.first; place < chunk.places.last; ++place) {
            EXPECT_EQ(planned.routes().expert_at(place), chunk.expert);
            for (std::uint32_t unit = chunk.units.first; unit < chunk.units.last; ++unit) ++covered[{place, unit}];
          }
        }
      }
      EXPECT_EQ(covered.size(), std::size_t{rows} * kOfARow * planned.num_units());
      EXPECT_TRUE(std::ranges::all_of(covered, [](const auto& one) { return one.second == 1; }));
    }
  }
}

// No thread is idle for more than a tenth of the time until the last one ends, where outputs are many enough.
TEST(ExpertChunks, LeaveNoThreadIdle) {
  const auto weight = weight_of_size(2 * 1088, 1024);
  for (const std::uint32_t rows : {1u, 8u, 32u, 128u}) {
    for (const std::uint32_t threads : {2u, 4u, 8u, 16u}) {
      if (rows == 1 && threads == 16) continue;  // eight or nine pieces of outputs each
      const Planned planned(*weight, threads, rows);
      std::vector<double> ends(threads);
      for (const ExpertChunk& chunk : planned.chunks().chunks()) {
        *std::ranges::min_element(ends) += static_cast<double>(chunk.cost);
      }
      EXPECT_GE(*std::ranges::min_element(ends), 0.9 * *std::ranges::max_element(ends))
          << rows << " rows, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::expert_chunks_test
