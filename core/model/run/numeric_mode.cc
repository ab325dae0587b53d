#include "core/model/run/numeric_mode.h"

#include <span>

#include "core/model/source/digest.h"

namespace quire::model {
namespace {

std::string hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  return text;
}

}  // namespace

std::string numeric_mode(const ModelSpec& config, std::uint64_t digest, std::string_view backend,
                         backend::Format weights, backend::KvType kv_dtype,
                         std::optional<backend::Format::Activation> blocks) {
  std::string dtype = weights.is_blocks() ? "blocks" : backend::name_of(weights);
  if (blocks) {
    using enum backend::Format::Activation;
    dtype += *blocks == kInt8PerRow ? " activations=int8-rows"
             : *blocks == kInt8     ? " activations=int8"
                                    : " activations=f32";
  }
  return "checkpoint=" + hex(digest) + " backend=" + std::string(backend.substr(0, backend.find('/'))) +
         " dtype=" + dtype + " kv=" + backend::name_of(kv_dtype) + " model=" + config.describe();
}

std::string fingerprint(std::string_view mode) { return "fp_" + hex(hash_bytes(std::as_bytes(std::span(mode)), 0)); }

}  // namespace quire::model
