#include "core/model/quantized/decoder_checkpoint.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/quantized/join.h"
#include "core/model/quantized/quantization.h"

namespace quire::model {
namespace {

using Tensors = Checkpoint::Tensors;

// A family's name of its decoder and its output matrix, and that of a text model inside a model with images, becomes
// "model." and "lm_head.".
Tensors renamed(Tensors&& original) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {{"language_model.model.", "model."},
                                                                         {"language_model.lm_head.", "lm_head."},
                                                                         {"model.language_model.", "model."},
                                                                         {"model.text_model.", "model."},
                                                                         {"transformer.", "model."},
                                                                         {"model.decoder.", "model."},
                                                                         {"decoder.", "model."},
                                                                         {"gpt_neox.", "model."},
                                                                         {"embed_out.", "lm_head."}};
  Tensors tensors;
  for (auto& [name, tensor] : original) {
    std::string whole = name;
    for (const auto& [from, to] : kPrefixes) {
      if (name.starts_with(from)) whole = std::string(to) + name.substr(from.size());
    }
    tensor.name = whole;
    tensors.emplace(std::move(whole), std::move(tensor));
  }
  return tensors;
}

Tensors with_prefix(Tensors from) {
  constexpr std::string_view kPrefix = "model.";
  if (std::ranges::any_of(from, [&](const auto& named) { return named.first.starts_with(kPrefix); })) return from;
  Tensors tensors;
  for (auto& [name, tensor] : from) {
    const std::string_view prefix = name.starts_with("lm_head.") ? std::string_view() : kPrefix;
    tensors.emplace(std::string(prefix) + name, std::move(tensor));
  }
  return tensors;
}

}  // namespace

Checkpoint open_decoder(const ModelFiles& files) {
  if (auto named = files.tensors()) return Checkpoint::of(files, *std::move(named));
  Checkpoint checkpoint = Checkpoint::open(files);
  checkpoint.set_tensors(with_prefix(renamed(join_quantized(checkpoint.tensors(), quantization_of(files)))));
  return checkpoint;
}

}  // namespace quire::model
