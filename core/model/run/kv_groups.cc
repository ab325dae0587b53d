#include "core/model/run/kv_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace quire::model {
namespace {

// Layers that attend to the same positions, by their index in ModelSpec::kv_shape().
struct LayerKind {
  std::uint32_t window = 0;
  std::vector<std::uint32_t> layers;
};

std::uint64_t kv_values(const backend::KvLayer& layer) {
  return std::uint64_t{layer.num_kv_heads} * layer.head_dim * (layer.latent != 0 ? 1 : 2);
}

std::uint32_t wider(std::uint32_t a, std::uint32_t b) { return a == 0 || b == 0 ? 0 : std::max(a, b); }

std::vector<backend::KvLayer> stored_layers(const ModelSpec& model) {
  return model.kv_shape(1, 0, backend::KvType::kF32).layers;
}

// Of each stored layer, the positions for which its K and V are read, by layers that share them too.
std::vector<std::uint32_t> read_windows(const ModelSpec& model) {
  const std::vector<std::uint32_t> windows = model.windows();
  std::vector<std::uint32_t> out(stored_layers(model).size(), 1);
  for (std::uint32_t layer = 0; layer < model.num_layers(); ++layer) {
    std::uint32_t& widest = out[model.kv_layer(layer)];
    widest = wider(widest, windows[layer]);
  }
  return out;
}

std::vector<LayerKind> kinds_of(const ModelSpec& model) {
  std::vector<LayerKind> kinds;
  const std::vector<std::uint32_t> windows = read_windows(model);
  for (std::uint32_t layer = 0; layer < windows.size(); ++layer) {
    auto kind = std::ranges::find(kinds, windows[layer], &LayerKind::window);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {windows[layer], {}});
    kind->layers.push_back(layer);
  }
  const auto goes_first = [](const LayerKind& a, const LayerKind& b) {
    return a.window != b.window && (a.window == 0 || (b.window != 0 && a.window > b.window));
  };
  std::ranges::sort(kinds, goes_first);
  return kinds;
}

// Groups of at most `most` values each, which no layer exceeds.
KvGroups cut(const std::vector<LayerKind>& kinds, std::vector<backend::KvLayer> layers, std::uint64_t most) {
  KvGroups out;
  for (const LayerKind& kind : kinds) {
    std::vector<std::uint32_t> sorted = kind.layers;
    std::ranges::stable_sort(sorted, std::ranges::greater{}, [&](std::uint32_t i) { return kv_values(layers[i]); });
    std::uint64_t values = most;  // of the last group: no room for the kind's first layer
    std::uint32_t place = 0;
    for (const std::uint32_t i : sorted) {
      if (kv_values(layers[i]) > most - values) {
        out.windows.push_back(kind.window);
        values = 0;
        place = 0;
      }
      values += kv_values(layers[i]);
      layers[i].group = out.size() - 1;
      layers[i].place = place++;
    }
  }
  out.layers = std::move(layers);
  return out;
}

std::uint64_t block_values(const KvGroups& groups) {
  return backend::block_layout({.layers = groups.layers}, kv_values).bytes;
}

// Values of blocks, one of each group, that no layer uses: in the groups of the first one's kind, and in all.
std::pair<std::uint64_t, std::uint64_t> padding_of(const KvGroups& groups) {
  const std::uint64_t block = block_values(groups);
  std::uint64_t first = 0;
  std::uint64_t all = 0;
  for (const std::uint32_t window : groups.windows) {
    all += block;
    if (window == groups.windows.front()) first += block;
  }
  for (const backend::KvLayer& layer : groups.layers) {
    all -= kv_values(layer);
    if (groups.windows[layer.group] == groups.windows.front()) first -= kv_values(layer);
  }
  return {first, all};
}

// Sizes of the layers, in values.
std::set<std::uint64_t> sizes_of(std::span<const backend::KvLayer> layers) {
  std::set<std::uint64_t> sizes;
  for (const backend::KvLayer& layer : layers) sizes.insert(kv_values(layer));
  return sizes;
}

// Multiples of each size that hold every layer.
std::set<std::uint64_t> possible_blocks(const std::set<std::uint64_t>& sizes, std::size_t num_layers) {
  std::set<std::uint64_t> blocks;
  for (const std::uint64_t size : sizes) {
    for (std::uint64_t count = 1; count <= num_layers; ++count) {
      if (count * size >= *sizes.rbegin()) blocks.insert(count * size);
    }
  }
  return blocks;
}

}  // namespace

backend::KvShape KvGroups::shape(std::uint32_t block_tokens, std::uint32_t num_blocks, backend::KvType type) const {
  return {.layers = layers, .block_tokens = block_tokens, .num_blocks = num_blocks, .type = type};
}

std::uint32_t KvGroups::padding_per_mille() const {
  const std::uint64_t all = block_values(*this) * size();
  return all == 0 ? 0 : static_cast<std::uint32_t>((padding_of(*this).second * 1000 + all / 2) / all);
}

std::string KvGroups::describe() const {
  if (size() <= 1) return "";
  std::string text = fmt::format("{} groups of layers:", size());
  for (std::uint32_t first = 0, end = 0; first < size(); first = end) {
    while (end < size() && windows[end] == windows[first]) ++end;
    const auto is_here = [&](const backend::KvLayer& layer) { return layer.group >= first && layer.group < end; };
    text += fmt::format("{} {} of {} layers that attend to {}", first == 0 ? "" : ",", end - first,
                        std::ranges::count_if(layers, is_here),
                        windows[first] == 0 ? "all positions" : fmt::format("{} positions", windows[first]));
  }
  const std::uint32_t padding = padding_per_mille();
  return fmt::format("{}; {}.{} % of the blocks are padding", text, padding / 10, padding % 10);
}

KvGroups one_group(const ModelSpec& model) {
  KvGroups out{.windows = {1}, .layers = stored_layers(model)};
  for (const std::uint32_t window : read_windows(model)) out.windows[0] = wider(out.windows[0], window);
  return out;
}

KvGroups cut_into_groups(const ModelSpec& model) {
  const std::vector<LayerKind> kinds = kinds_of(model);
  const std::vector<backend::KvLayer> layers = stored_layers(model);
  const std::set<std::uint64_t> sizes = sizes_of(layers);
  const std::uint32_t most_groups = sizes.size() == 1 ? KvGroups::kMostGroupsOfAlike : KvGroups::kMostGroups;
  if (kinds.size() <= 1 || kinds.size() > most_groups) return one_group(model);
  KvGroups best;
  std::tuple<std::uint64_t, std::uint64_t, std::uint32_t> least;
  for (const std::uint64_t most : possible_blocks(sizes, layers.size())) {
    KvGroups groups = cut(kinds, layers, most);
    if (groups.size() > most_groups) continue;
    const auto [first, all] = padding_of(groups);
    const std::tuple cost{first, all, groups.size()};
    if (best.windows.empty() || cost < least) {
      least = cost;
      best = std::move(groups);
    }
  }
  return best;
}

}  // namespace quire::model
