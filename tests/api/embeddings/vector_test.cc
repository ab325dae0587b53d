#include "api/embeddings/vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

namespace quire::api::test {
namespace {

bridge::PromptEmbedding summed(std::vector<double> sums, std::uint32_t num_rows) {
  bridge::PromptEmbedding embedding(sums.size());
  embedding.sums = std::move(sums);
  embedding.num_rows = num_rows;
  return embedding;
}

TEST(EmbeddingVector, IsTheMeanAndItsFirstNumbersWhereFewerAreWanted) {
  EXPECT_EQ(vector_of(summed({2.0, -4.0, 1.0}, 4), 3, false), (std::vector<float>{0.5f, -1.0f, 0.25f}));
  EXPECT_EQ(vector_of(summed({2.0, -4.0, 1.0}, 4), 1, false), (std::vector<float>{0.5f}));
}

TEST(EmbeddingVector, HasLengthOneWhereNormalisedAlsoWhenTruncated) {
  std::mt19937 random(1);
  std::normal_distribution<double> draw(0.0, 1e4);
  std::vector<double> sums(300);
  for (double& sum : sums) sum = draw(random);
  for (const std::size_t dimensions : {1u, 2u, 299u, 300u}) {
    const std::vector<float> vector = vector_of(summed(sums, 7), dimensions, true);
    ASSERT_EQ(vector.size(), dimensions);
    double squares = 0.0;
    for (const float number : vector) squares += double{number} * double{number};
    EXPECT_NEAR(std::sqrt(squares), 1.0, 1e-7);
    EXPECT_EQ(vector[0] < 0, sums[0] < 0);
  }
}

TEST(EmbeddingVector, OfNothingButZerosIsZeros) {
  EXPECT_EQ(vector_of(summed({0.0, 0.0}, 1), 2, true), (std::vector<float>{0.0f, 0.0f}));
}

TEST(EmbeddingVector, OfTheGreatestNumbersIsFinite) {
  const double most = std::numeric_limits<float>::max();
  EXPECT_EQ(vector_of(summed({most * 8, most * 8}, 8), 2, true), (std::vector<float>{0x1.6a09e6p-1f, 0x1.6a09e6p-1f}));
}

// RFC 4648, section 10, as far as its texts are whole numbers; and every length modulo 3.
TEST(Base64, IsThatOfTheBytesLittleEndianFirst) {
  EXPECT_EQ(base64_of({}), "");
  float foob = 0.0f;
  std::memcpy(&foob, "foob", 4);
  EXPECT_EQ(base64_of({&foob, 1}), "Zm9vYg==");
  const float numbers[] = {1.0f, -2.5f, 0x1.fffffep127f};
  EXPECT_EQ(base64_of(std::span(numbers).first(1)), "AACAPw==");
  EXPECT_EQ(base64_of(std::span(numbers).first(2)), "AACAPwAAIMA=");
  EXPECT_EQ(base64_of(numbers), "AACAPwAAIMD//39/");
}

}  // namespace
}  // namespace quire::api::test
