// norm, rope, the gated activation, add, gather: against their equations in f64 and, bit for bit, taken literally in
// f32.
#include <cmath>

#include "core/sample/math.h"
#include "tests/core/cpu/rig.h"

namespace quire::cpu::test::row_ops_test {
namespace {

using backend::Ops;

constexpr std::uint32_t kRows = 5;
constexpr std::uint32_t kWidths[] = {1, 7, 8, 15, 16, 17, 31, 64, 172, 300};

// x[t, :] normed by the contract's sum16.
std::vector<float> plain_norm(const std::vector<float>& x, const std::vector<float>& scale, float eps) {
  std::vector<float> out(x.size());
  const std::size_t n = scale.size();
  for (std::size_t t = 0; t < x.size(); t += n) {
    float lanes[16] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[t + i], x[t + i], lanes[i % 16]);
    for (std::size_t half = 8; half != 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    const float r = 1.0f / std::sqrt(lanes[0] / static_cast<float>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) out[t + i] = (x[t + i] * r) * scale[i];
  }
  return out;
}

TEST(Norm, EqualsItsEquationBitForBitAndF64Closely) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const std::uint32_t width : kWidths) {
      SCOPED_TRACE(isa + " width " + std::to_string(width));
      Random random(width);
      const std::vector<float> x = random.floats(std::size_t{kRows} * width, 3.0f);
      const std::vector<float> scale = random.floats(width, 2.0f);
      auto in = ops->make_buffer(kRows, width);
      auto out = ops->make_buffer(kRows, width);
      const OwnedBatch batch = plain_rows(kRows);
      ops->begin(batch.view());
      fill(*ops, *in, x);
      ops->norm(*in, {ops->upload(scale).get(), 1e-5f}, kRows, *out);
      const std::vector<float> normed = read(*ops, *out, kRows);
      EXPECT_TRUE(same_bits(normed, plain_norm(x, scale, 1e-5f)));
      for (std::size_t t = 0; t < kRows; ++t) {
        double squares = 0;
        for (std::size_t i = 0; i < width; ++i) squares += double{x[t * width + i]} * double{x[t * width + i]};
        const double r = 1 / std::sqrt(squares / width + double{1e-5f});
        for (std::size_t i = 0; i < width; ++i) {
          const double exact = double{x[t * width + i]} * r * double{scale[i]};
          // width/16 + 4 roundings of the sum count half under the root; five more follow.
          EXPECT_NEAR(normed[t * width + i], exact, std::abs(exact) * ((width / 16.0 + 5) / 2 + 5) * 0x1p-24);
        }
      }
    }
  }
}

TEST(ActMul, EqualsItsEquationBitForBitAndF64Closely) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const std::uint32_t width : kWidths) {
      SCOPED_TRACE(isa + " width " + std::to_string(width));
      Random random(width);
      std::vector<float> x = random.floats(std::size_t{kRows} * 2 * width, 20.0f);
      x[0] = 0.0f;
      x[2 * width] = -200.0f;  // exp overflows: -200 / inf
      x[4 * width] = 200.0f;
      auto in = ops->make_buffer(kRows, 2 * width);
      auto out = ops->make_buffer(kRows, width);
      const OwnedBatch batch = plain_rows(kRows);
      ops->begin(batch.view());
      fill(*ops, *in, x);
      ops->activate(*in, backend::Activation::kSilu, true, kRows, *out);
      const std::vector<float> product = read(*ops, *out, kRows);
      for (std::size_t t = 0; t < kRows; ++t) {
        for (std::size_t i = 0; i < width; ++i) {
          const float gate = x[t * 2 * width + i];
          const float up = x[t * 2 * width + width + i];
          const float plain = (gate / (1.0f + sample::exp_f32(-gate))) * up;
          EXPECT_EQ(std::bit_cast<std::uint32_t>(product[t * width + i]), std::bit_cast<std::uint32_t>(plain));
          const double exact = double{gate} / (1 + std::exp(-double{gate})) * double{up};
          EXPECT_NEAR(product[t * width + i], exact, std::abs(exact) * 5 * 0x1p-23 + 1e-37);
        }
      }
    }
  }
}

TEST(Add, AddsRowByRow) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 2);
    for (const std::uint32_t width : kWidths) {
      Random random(width);
      const std::vector<float> x = random.floats(std::size_t{kRows} * width);
      const std::vector<float> y = random.floats(std::size_t{kRows} * width);
      auto sum = ops->make_buffer(kRows, width);
      auto term = ops->make_buffer(kRows, width);
      const OwnedBatch batch = plain_rows(kRows);
      ops->begin(batch.view());
      fill(*ops, *sum, x);
      fill(*ops, *term, y);
      ops->add(*sum, *term, 1.0f, kRows);
      std::vector<float> expected(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + y[i];
      EXPECT_TRUE(same_bits(read(*ops, *sum, kRows), expected)) << isa << " width " << width;
    }
  }
}

TEST(GatherLogitsRows, CopiesTheRowsThatSpeak) {
  const auto ops = make_ops("auto", 1);
  Random random(1);
  const std::vector<float> x = random.floats(kRows * 20);
  auto all = ops->make_buffer(kRows, 20);
  auto some = ops->make_buffer(3, 20);
  OwnedBatch batch = plain_rows(kRows);
  batch.logits_rows = {{1, 2, {}}, {3, 4, {}}, {3, 4, {}}};
  ops->begin(batch.view());
  fill(*ops, *all, x);
  ops->gather_logits_rows(*all, *some);
  const std::vector<float> gathered = read(*ops, *some, 3);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(gathered[i], x[20 + i]);
    EXPECT_EQ(gathered[20 + i], x[60 + i]);
    EXPECT_EQ(gathered[40 + i], x[60 + i]);
  }
}

TEST(Cut, TakesBackTheColumnsThatWerePlaced) {
  const auto ops = make_ops("auto", 2);
  Random random(2);
  const std::vector<float> x = random.floats(kRows * 20);
  const OwnedBatch batch = plain_rows(kRows);
  auto all = ops->make_buffer(kRows, 20);
  auto whole = ops->make_buffer(kRows, 20);
  ops->begin(batch.view());
  fill(*ops, *all, x);
  for (const std::uint32_t column : {0u, 7u, 13u}) {
    auto part = ops->make_buffer(kRows, 7);
    ops->cut(*all, kRows, column, *part);
    const std::vector<float> taken = read(*ops, *part, kRows);
    for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], x[i / 7 * 20 + column + i % 7]);
    ops->place(*part, kRows, column, *whole);
  }
  EXPECT_EQ(read(*ops, *whole, kRows), x);
}

// Rotated q is read back from the buffer; rotated and stored k and v through attention: a row that sees itself alone
// answers its own v, and its k decides nothing, so k is checked by the scores of the attention and decoder tests.
TEST(RopeStore, NormsAndRotatesEveryHeadAsItsEquationSays) {
  for (const std::string& isa : supported_isas()) {
    for (const std::uint32_t size : {2u, 8u, 18u, 64u, 80u, 128u}) {
      for (const bool with_norm : {false, true}) {
        SCOPED_TRACE(isa + " head " + std::to_string(size) + (with_norm ? " normed" : ""));
        const auto ops = make_ops(isa, 2);
        Random random(size);
        const std::uint32_t half = size / 2;
        const std::uint32_t width = 5 * size;  // 3 query heads, 1 kv head
        std::vector<float> cosines(kRows * half);
        std::vector<float> sines(kRows * half);
        for (std::size_t i = 0; i < cosines.size(); ++i) {
          const double angle = static_cast<double>(i / half) / std::pow(10000.0, static_cast<double>(i % half) / half);
          cosines[i] = static_cast<float>(std::cos(angle));
          sines[i] = static_cast<float>(std::sin(angle));
        }
        const std::vector<float> x = random.floats(std::size_t{kRows} * width, 2.0f);
        const std::vector<float> scale = random.floats(size);
        const auto rope = ops->upload_rope(cosines, sines, half);
        const auto norm = ops->upload(scale);
        backend::AttentionSpec spec;
        spec.num_heads = 3;
        spec.num_kv_heads = 1;
        spec.head_dim = size;
        spec.rope = rope.get();
        if (with_norm) spec.q_norm.norm = spec.k_norm.norm = {norm.get(), 1e-6f};
        auto qkv = ops->make_buffer(kRows, width);
        auto cache = ops->make_kv({backend::kv_layers(1, 1, size), 16, 1, KvType::kF32});
        const OwnedBatch batch = plain_rows(kRows);
        ops->begin(batch.view());
        fill(*ops, *qkv, x);
        ops->rope_store(spec, *qkv, *cache);
        const std::vector<float> rotated = read(*ops, *qkv, kRows);

        for (std::size_t t = 0; t < kRows; ++t) {
          for (std::size_t h = 0; h < 3; ++h) {
            const auto start = x.begin() + static_cast<std::ptrdiff_t>(t * width + h * size);
            std::vector<float> head(start, start + size);
            if (with_norm) head = plain_norm(head, scale, 1e-6f);
            std::vector<float> expected(size);
            for (std::size_t i = 0; i < half; ++i) {
              const float lo = head[i];
              const float hi = head[half + i];
              const float cosine = cosines[t * half + i];
              const float sine = sines[t * half + i];
              expected[i] = std::fma(-hi, sine, lo * cosine);
              expected[half + i] = std::fma(lo, sine, hi * cosine);
            }
            EXPECT_TRUE(same_bits(std::span(rotated).subspan(t * width + h * size, size), expected)) << "row " << t;
          }
        }
      }
    }
  }
}

TEST(RopeStore, KeepsAValueInTheCachesTypeRoundedToEven) {
  for (const std::string& isa : supported_isas()) {
    const auto ops = make_ops(isa, 1);
    // Halfway between two bf16 values, both ways; one just above; a NaN; an infinity.
    const std::vector<float> v = {1.00390625f, 1.01171875f, 1.0039063f, NAN, INFINITY, -3e38f, 1e-45f, -0.0f};
    std::vector<float> x(8, 1.0f);
    x.insert(x.end(), 8, 0.5f);
    x.insert(x.end(), v.begin(), v.end());
    backend::AttentionSpec spec;
    spec.num_heads = spec.num_kv_heads = 1;
    spec.head_dim = 8;
    const auto rope = ops->upload_rope(std::vector<float>(4, 1.0f), std::vector<float>(4, 0.0f), 4);
    spec.rope = rope.get();
    auto qkv = ops->make_buffer(1, 24);
    auto out = ops->make_buffer(1, 8);
    auto cache = ops->make_kv({backend::kv_layers(1, 1, 8), 16, 1, KvType::kBF16});
    const OwnedBatch batch = plain_rows(1);
    ops->begin(batch.view());
    fill(*ops, *qkv, x);
    ops->rope_store(spec, *qkv, *cache);
    ops->attend(spec, *qkv, *cache, *out);
    const std::vector<float> answer = read(*ops, *out, 1);
    for (std::size_t i = 0; i < 8; ++i) {
      if (std::isnan(v[i])) {
        EXPECT_TRUE(std::isnan(answer[i]));
      } else {
        EXPECT_EQ(answer[i], f32_of_bf16(bf16_of_f32(v[i]))) << "value " << v[i];
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::row_ops_test
