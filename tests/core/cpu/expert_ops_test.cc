// A mixture's ops: every row's bits are those of its experts one by one, by dense linear layers, whatever rows come with
// it, in every format, on every instruction set.
#include <functional>

#include "tests/core/cpu/experts/experts_lab.h"

namespace quire::cpu::test::expert_ops_test {
namespace {

using backend::RouteRule;
using backend::RouteScore;
using backend::Weight;
using backend::WeightList;

struct Shape {
  std::uint32_t hidden = 40;
  std::uint32_t width = 32;
  std::uint32_t num_experts = 6;
  std::uint32_t top_k = 2;

  RouteRule rule() const { return {.num_experts = num_experts, .top_k = top_k, .score = RouteScore::kLogit}; }
};

// Experts on a device.
class Experts {
 public:
  Experts(backend::Ops& ops, const Shape& shape, std::optional<Format> quantize, bool biased = false,
          bool alike = false)
      : shape_(shape), ops_(ops) {
    for (std::uint32_t expert = 0; expert < shape.num_experts; ++expert) {
      Random random(alike ? 7 : 100 + expert);
      add(random_matrix(random, 2 * shape.width, shape.hidden, Format::kF32), quantize, biased, random, gate_up_);
      add(random_matrix(random, shape.hidden, shape.width, Format::kF32), quantize, biased, random, down_);
    }
    for (std::size_t i = 0; i < gate_up_.size(); ++i) {
      gate_up_lists_.emplace_back(*gate_up_[i]);
      down_lists_.emplace_back(*down_[i]);
    }
  }

  const Weight& gate_up(std::uint32_t expert) const { return *gate_up_[expert]; }
  const Weight& down(std::uint32_t expert) const { return *down_[expert]; }

  // The mixture's rows; x [T, E], logits [T, X].
  std::vector<float> run(const std::vector<float>& x, const std::vector<float>& logits,
                         const backend::SharedExpert& shared = {}) const {
    const auto rows = static_cast<std::uint32_t>(x.size() / shape_.hidden);
    const std::uint32_t all = rows * shape_.top_k;
    const auto in = buffer_of(ops_, x, rows);
    const auto router = buffer_of(ops_, logits, rows);
    const auto routes = ops_.make_routes(rows, shape_.num_experts, shape_.top_k);
    const auto by_expert = ops_.make_buffer(all, shape_.hidden);
    const auto wide = ops_.make_buffer(all, 2 * shape_.width);
    const auto activated = ops_.make_buffer(all, shape_.width);
    const auto out = ops_.make_buffer(rows, shape_.hidden);
    const OwnedBatch batch = plain_rows(rows);
    ops_.begin(batch.view());
    ops_.route(*router, shape_.rule(), {}, rows, *routes);
    ops_.gather_by_expert(*in, *routes, rows, *by_expert);
    const backend::ThenActivate then{activated.get()};
    ops_.linear_by_expert(*by_expert, gate_up_lists_, *routes, rows, *wide, &then);
    ops_.linear_by_expert(*activated, down_lists_, *routes, rows, *by_expert);
    ops_.combine_experts(*by_expert, *routes, shared, rows, *out);
    const std::vector<float> result = read(ops_, *out, rows);
    ops_.collect({});
    return result;
  }

  // A row of one expert, by linear().
  std::vector<float> one(std::uint32_t expert, const std::vector<float>& row) const {
    const auto in = buffer_of(ops_, row, 1);
    const auto wide = ops_.make_buffer(1, 2 * shape_.width);
    const auto activated = ops_.make_buffer(1, shape_.width);
    const auto out = ops_.make_buffer(1, shape_.hidden);
    const OwnedBatch batch = plain_rows(1);
    ops_.begin(batch.view());
    ops_.linear(*in, gate_up(expert), 1, *wide, {}, backend::ThenActivate{activated.get()});
    ops_.linear(*activated, down(expert), 1, *out);
    const std::vector<float> result = read(ops_, *out, 1);
    ops_.collect({});
    return result;
  }

  // The equations of a row, its experts one by one.
  std::vector<float> by_equation(const std::vector<float>& row, const std::vector<float>& logits) const {
    const PlainRoute route = plain_route(shape_.rule(), logits);
    std::vector<float> sum;
    for (std::size_t i = 0; i < route.experts.size(); ++i) {
      const std::vector<float> y = one(route.experts[i], row);
      if (sum.empty()) {
        for (const float value : y) sum.push_back(value * route.weights[i]);
      } else {
        for (std::size_t e = 0; e < y.size(); ++e) sum[e] = std::fma(y[e], route.weights[i], sum[e]);
      }
    }
    return sum;
  }

 private:
  void add(const Matrix& matrix, std::optional<Format> quantize, bool biased, Random& random,
           std::vector<std::unique_ptr<Weight>>& to) {
    const backend::HostMatrix view = matrix.view();
    const std::vector<float> values = random.floats(matrix.n);
    const std::span<const float> bias = values;
    to.push_back(
        ops_.pack({&view, 1}, biased ? std::span(&bias, 1) : std::span<const std::span<const float>>{}, quantize));
  }

  Shape shape_;
  backend::Ops& ops_;
  std::vector<std::unique_ptr<Weight>> gate_up_, down_;
  std::vector<WeightList> gate_up_lists_, down_lists_;
};

std::vector<float> part(const std::vector<float>& values, std::size_t row, std::size_t width) {
  return {values.begin() + static_cast<std::ptrdiff_t>(row * width),
          values.begin() + static_cast<std::ptrdiff_t>((row + 1) * width)};
}

// Runs all rows together and holds each against its experts one by one.
void expect_rows_by_equation(const Experts& experts, const Shape& shape, const std::vector<float>& x,
                             const std::vector<float>& logits) {
  const std::vector<float> together = experts.run(x, logits);
  for (std::size_t row = 0; row < x.size() / shape.hidden; ++row) {
    EXPECT_TRUE(same_bits(part(together, row, shape.hidden),
                          experts.by_equation(part(x, row, shape.hidden), part(logits, row, shape.num_experts))))
        << "row " << row;
  }
}

std::vector<std::optional<Format>> formats() {
  std::vector<std::optional<Format>> all = {std::nullopt};
  for (const Format format : backend::kQuantizedFormats) all.emplace_back(format);
  return all;
}

TEST(ExpertOps, GiveEachRowTheBitsOfItsExpertsOneByOne) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const std::optional<Format>& format : formats()) {
      for (const Shape& shape : {Shape{}, Shape{.hidden = 19, .width = 21, .num_experts = 3, .top_k = 3},
                                 Shape{.hidden = 300, .width = 272, .num_experts = 9, .top_k = 4}}) {
        SCOPED_TRACE(isa + " " + (format ? backend::name_of(*format) : "f32") + " " + std::to_string(shape.hidden));
        const Experts experts(*ops, shape, format, /*biased=*/shape.top_k == 3);
        Random random(shape.hidden);
        for (const std::uint32_t rows : {1u, 13u}) {
          expect_rows_by_equation(experts, shape, random.floats(std::size_t{rows} * shape.hidden),
                                  random.floats(std::size_t{rows} * shape.num_experts, 3.0f));
        }
      }
    }
  }
}

// Rows with logits so that row t has the experts that choice(t) names.
std::vector<float> logits_of(const Shape& shape, std::uint32_t rows,
                             const std::function<std::vector<std::uint32_t>(std::uint32_t)>& choice) {
  std::vector<float> logits(std::size_t{rows} * shape.num_experts, -1.0f);
  for (std::uint32_t row = 0; row < rows; ++row) {
    float next = 1.0f;
    for (const std::uint32_t expert : choice(row)) {
      logits[row * shape.num_experts + expert] = next;
      next += 0.25f;
    }
  }
  return logits;
}

TEST(ExpertOps, TakeBatchesInWhichExpertsHaveOneRowEachNoneOrAll) {
  const Shape shape{.hidden = 64, .width = 48, .num_experts = 6, .top_k = 2};
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t threads : {1u, 3u}) {
      const auto ops = make_ops(isa, threads);
      const Experts experts(*ops, shape, std::nullopt);
      Random random(5);
      const auto expect = [&](std::uint32_t rows,
                              const std::function<std::vector<std::uint32_t>(std::uint32_t)>& choice) {
        expect_rows_by_equation(experts, shape, random.floats(std::size_t{rows} * shape.hidden),
                                logits_of(shape, rows, choice));
      };
      using List = std::vector<std::uint32_t>;
      expect(3, [](std::uint32_t row) { return List{2 * row, 2 * row + 1}; });  // one row each
      expect(40, [](std::uint32_t) { return List{5, 0}; });                     // all rows, and none for the others
      expect(40, [](std::uint32_t row) { return List{row % 6, (row + 1) % 6}; });
      expect(7, [](std::uint32_t row) { return row == 3 ? List{1, 2} : List{3, 4}; });
    }
  }
}

TEST(ExpertOps, GiveARowTheSameBitsAloneAndAmongOthers) {
  const Shape shape{.hidden = 256, .width = 160, .num_experts = 16, .top_k = 4};
  for (const std::optional<Format>& format : formats()) {
    SCOPED_TRACE(format ? backend::name_of(*format) : "f32");
    constexpr std::uint32_t kRows = 70;
    Random random(9);
    const std::vector<float> x = random.floats(std::size_t{kRows} * shape.hidden);
    const std::vector<float> logits = random.floats(std::size_t{kRows} * shape.num_experts, 2.0f);
    const auto reference = make_ops("scalar", 1);
    const std::vector<float> expected = Experts(*reference, shape, format).run(x, logits);
    for (const std::string& isa : supported_isas()) {
      const auto ops = make_ops(isa, 4);
      const Experts experts(*ops, shape, format);
      EXPECT_TRUE(same_bits(experts.run(x, logits), expected)) << isa;
      for (const std::size_t row : {0u, 33u, 69u}) {
        EXPECT_TRUE(same_bits(experts.run(part(x, row, shape.hidden), part(logits, row, shape.num_experts)),
                              part(expected, row, shape.hidden)))
            << isa << " row " << row;
      }
    }
  }
}

TEST(ExpertOps, GiveTwoEqualExpertsWithEqualLogitsTheBitsOfOne) {
  const Shape shape{.hidden = 64, .width = 48, .num_experts = 2, .top_k = 2};
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    const Experts experts(*ops, shape, std::nullopt, /*biased=*/false, /*alike=*/true);
    Random random(3);
    const std::vector<float> x = random.floats(shape.hidden);
    EXPECT_TRUE(same_bits(experts.run(x, {0.7f, 0.7f}), experts.one(0, x))) << isa;
  }
}

TEST(ExpertOps, AddASharedExpertBehindTheOthersTimesItsGate) {
  const Shape shape;
  constexpr std::uint32_t kRows = 5;
  const auto ops = make_ops("scalar", 1);
  const Experts experts(*ops, shape, std::nullopt);
  Random random(4);
  const std::vector<float> x = random.floats(std::size_t{kRows} * shape.hidden);
  const std::vector<float> logits = random.floats(std::size_t{kRows} * shape.num_experts);
  const std::vector<float> shared = random.floats(std::size_t{kRows} * shape.hidden);
  const std::vector<float> gate = random.floats(kRows, 3.0f);
  const auto shared_rows = buffer_of(*ops, shared, kRows);
  const auto gate_rows = buffer_of(*ops, gate, kRows);
  const std::vector<float> alone = experts.run(x, logits);
  const std::vector<float> added = experts.run(x, logits, {shared_rows.get()});
  const std::vector<float> gated = experts.run(x, logits, {shared_rows.get(), gate_rows.get()});
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(added[i], alone[i] + shared[i]);
    const float weight = 1.0f / (1.0f + sample::exp_f32(-gate[i / shape.hidden]));
    EXPECT_EQ(gated[i], std::fma(shared[i], weight, alone[i]));
  }
}

// Widths of whole panels, which are activated with the product, and others.
TEST(ExpertOps, LimitGatesAndUpsByTheirEquationOnEveryInstructionSet) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const std::uint32_t width : {48u, 21u}) {
      Random random(width);
      constexpr std::uint32_t kRows = 9;
      constexpr std::uint32_t kHidden = 33;
      const Matrix matrix = random_matrix(random, 2 * width, kHidden, Format::kF32);
      const std::vector<float> x = random.floats(kRows * kHidden);
      const auto weight = pack(*ops, matrix);
      const std::vector<WeightList> one = {WeightList(*weight)};
      const auto in = buffer_of(*ops, x, kRows);
      const auto logits = buffer_of(*ops, std::vector<float>(kRows), kRows);
      const auto routes = ops->make_routes(kRows, 1, 1);
      const auto products = ops->make_buffer(kRows, 2 * width);
      const auto out = ops->make_buffer(kRows, width);
      const OwnedBatch batch = plain_rows(kRows);
      ops->begin(batch.view());
      ops->route(*logits, {.num_experts = 1, .top_k = 1}, {}, kRows, *routes);
      backend::ThenActivate then{out.get()};
      then.clamp = backend::Clamp{1.702f, 1.5f};
      ops->linear_by_expert(*in, one, *routes, kRows, *products, &then);
      const std::vector<float> found = read(*ops, *out, kRows);
      ops->collect({});
      const std::vector<float> plain = run_linear(*ops, x, *weight, kRows);
      for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          const float g = std::min(1.5f, plain[row * 2 * width + i]);
          const float u = std::min(1.5f, std::max(-1.5f, plain[row * 2 * width + width + i]));
          EXPECT_EQ(found[row * width + i], (u + 1.0f) * (g / (1.0f + sample::exp_f32(-(1.702f * g))))) << isa;
        }
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::expert_ops_test
