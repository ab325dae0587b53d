#include "core/grammar/automaton/masks.h"

#include <algorithm>
#include <bit>

#include "core/grammar/automaton/alike.h"

namespace quire::grammar {
namespace {

constexpr std::size_t kRoomMasks = 512;
constexpr std::uint32_t kAnyLength = UINT32_MAX;

void set_bit(std::span<std::uint32_t> mask, TokenId token) {
  const auto bit = static_cast<std::uint32_t>(token);
  mask[bit / 32] |= 1U << bit % 32;
}

}  // namespace

// Memory for what is kept is taken as it is written to.
Masks::Masks(const Automaton& automaton, const Vocabulary& vocabulary)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      frontier_(automaton),
      short_(automaton.size()),
      long_(automaton.size()),
      room_words_(kRoomMasks * vocabulary.mask_words() + vocabulary.tree().size()),
      room_(std::make_unique_for_overwrite<std::uint32_t[]>(room_words_)),
      mask_(vocabulary.mask_words()) {
  nodes_.reserve(vocabulary.tree().size());
}

bool Masks::advance(Stacks& stacks, std::vector<Stack>& tops, std::string_view bytes) {
  const std::size_t num_nodes = stacks.size();
  if (bytes.empty()) return false;
  bool goes_on = frontier_.begin(stacks, tops);
  for (std::size_t i = 0; i < bytes.size() && goes_on; ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    goes_on = i + 1 < bytes.size() ? frontier_.step(stacks, i, byte) : frontier_.last_step(stacks, i, byte, tops);
  }
  if (goes_on) {  // as far as a mask would see it
    const std::size_t num_needed = stacks.size();
    frontier_.begin(stacks, tops);
    stacks.truncate(num_needed);
  }
  if (frontier_.lost()) tops.clear();
  if (!goes_on) stacks.truncate(num_nodes);
  return goes_on || frontier_.lost();
}

void Masks::allowed(Stacks& stacks, std::span<const Stack> tops, std::span<std::uint32_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  for (const Stack& top : tops) {
    add(local(short_, automaton_.alike[top.state], {0, kAlikeBytes}), stacks, top.below, mask);
    add(local(long_, top.state, {kAlikeBytes, kAnyLength}), stacks, top.below, mask);
  }
}

void Masks::add(const Local& known, Stacks& stacks, std::uint32_t below, std::span<std::uint32_t> mask) {
  merge(known, mask);
  if (known.num_nodes == 0 || below == Stacks::kBottom) return;
  const std::uint32_t* nodes = room_.get() + known.offset;
  nodes += known.num_tokens == kIsMask ? mask_.size() : known.num_tokens;
  const std::size_t num_nodes = stacks.size();
  const Stack rest = stacks.pop(below);
  frontier_.begin(stacks, {&rest, 1});
  for (std::uint32_t i = 0; i < known.num_nodes; ++i) walk(stacks, nodes[i], {0, kAnyLength}, mask, nullptr);
  stacks.truncate(num_nodes);
}

const Masks::Local& Masks::local(std::vector<Local>& locals, std::uint32_t state, Lengths lengths) {
  Local& local = locals[state];
  if (local.round == round_) return local;
  std::fill(mask_.begin(), mask_.end(), 0);
  nodes_.clear();
  const Stack alone{state, Stacks::kBottom};
  if (frontier_.begin(local_stacks_, {&alone, 1})) walk(local_stacks_, 0, lengths, mask_, &nodes_);
  local_stacks_.truncate(1);
  keep(local);
  return local;
}

void Masks::keep(Local& local) {
  std::uint32_t num_tokens = 0;
  for (const std::uint32_t word : mask_) num_tokens += static_cast<std::uint32_t>(std::popcount(word));
  const bool few = num_tokens < mask_.size();
  const std::size_t needed = (few ? num_tokens : mask_.size()) + nodes_.size();
  if (num_used_ + needed > room_words_) {
    num_used_ = 0;
    ++round_;
  }
  local = {round_, static_cast<std::uint32_t>(num_used_), few ? num_tokens : kIsMask,
           static_cast<std::uint32_t>(nodes_.size())};
  std::uint32_t* out = room_.get() + num_used_;
  if (few) {
    for (std::uint32_t i = 0; i < mask_.size(); ++i) {
      for (std::uint32_t word = mask_[i]; word != 0; word &= word - 1) {
        *out++ = 32 * i + static_cast<std::uint32_t>(std::countr_zero(word));
      }
    }
  } else {
    out = std::copy(mask_.begin(), mask_.end(), out);
  }
  std::copy(nodes_.begin(), nodes_.end(), out);
  num_used_ += needed;
}

void Masks::merge(const Local& local, std::span<std::uint32_t> mask) const {
  const std::uint32_t* kept = room_.get() + local.offset;
  if (local.num_tokens == kIsMask) {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= kept[i];
  } else {
    for (std::uint32_t i = 0; i < local.num_tokens; ++i) set_bit(mask, static_cast<TokenId>(kept[i]));
  }
}

void Masks::walk(Stacks& stacks, std::uint32_t root, Lengths lengths, std::span<std::uint32_t> mask,
                 std::vector<std::uint32_t>* at_bottom) {
  const auto tree = vocabulary_.tree();
  const std::uint32_t base = tree[root].depth + 1U;
  for (std::uint32_t i = root + 1; i < tree[root].end;) {
    const Vocabulary::Node& node = tree[i];
    const std::uint32_t before = node.depth - base;
    if (node.depth > lengths.upto || node.reach <= lengths.above || !frontier_.step(stacks, before, node.byte)) {
      i = node.end;
      continue;
    }
    if (node.depth > lengths.above) {
      for (const TokenId token : vocabulary_.tokens_at(i)) set_bit(mask, token);
      if (at_bottom != nullptr && frontier_.at_bottom(before + 1) && node.end > i + 1) at_bottom->push_back(i);
    }
    i = frontier_.only_bottom(before + 1) ? node.end : i + 1;
  }
}

}  // namespace quire::grammar
