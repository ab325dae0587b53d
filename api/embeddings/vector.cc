#include "api/embeddings/vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace quire::api {
namespace {

constexpr double kLeastLength = 1e-12;
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::vector<float> vector_of(const bridge::PromptEmbedding& embedding, std::size_t dimensions, bool normalize) {
  std::vector<double> mean(embedding.sums.begin(), embedding.sums.begin() + static_cast<std::ptrdiff_t>(dimensions));
  double squares = 0.0;
  for (double& number : mean) {
    number /= embedding.num_rows;
    squares += number * number;
  }
  const double length = normalize ? std::max(std::sqrt(squares), kLeastLength) : 1.0;
  std::vector<float> vector;
  vector.reserve(mean.size());
  for (const double number : mean) vector.push_back(static_cast<float>(number / length));
  return vector;
}

std::string base64_of(std::span<const float> numbers) {
  std::string text;
  std::uint32_t bits = 0;
  int num_bits = 0;  // low bits of `bits` that are not written yet
  for (const float number : numbers) {
    const auto word = std::bit_cast<std::uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) {
      bits = (bits << 8 | (word >> shift & 0xFF)) & 0xFFFF;
      for (num_bits += 8; num_bits >= 6; num_bits -= 6) text += kDigits[bits >> (num_bits - 6) & 0x3F];
    }
  }
  if (num_bits > 0) text += kDigits[bits << (6 - num_bits) & 0x3F];
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

}  // namespace quire::api
