#include "tests/sim/invariants.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace quire::sim {
namespace {

using quire::testing::EngineRig;
using quire::testing::LateRunner;
using quire::testing::ToyRunner;

// What the tables say of a block.
struct Seen {
  std::uint32_t holders = 0;
  std::optional<CacheRoot> root;
};

void check_sequence(const World& world, const schedule::Sequence& sequence, ToyRunner& runner, const LateRunner& late,
                    std::vector<Seen>& seen, Counts& counts) {
  const auto p = static_cast<std::uint32_t>(world.p);
  const flow::Request& request = sequence.request();
  const auto blocks = sequence.table.blocks();
  CHECK_LE(sequence.computed(), sequence.num_tokens());
  if (sequence.state == schedule::State::kWaiting) {
    CHECK(blocks.empty());
    if (sequence.swapped.empty()) CHECK_EQ(sequence.computed(), 0u);
    CHECK_LE(sequence.overtaken, static_cast<std::uint32_t>(world.overtakes));
    counts.parked += sequence.parked;
    return;
  }
  CHECK_LE(sequence.computed(), sequence.table.capacity_tokens());
  counts.parked += sequence.parked;
  const std::uint32_t in_blocks =
      world.groups != 0 ? sequence.computed() / testing::kToyGroup * testing::kToyGroup : sequence.computed();
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == flow::kDroppedBlock) {
      CHECK(sequence.lossy() || world.window != 0);
      ++counts.dropped_blocks;
      continue;
    }
    Seen& block = seen.at(blocks[i].value);
    if (block.holders++ == 0) {
      block.root = request.cache_root;
    } else if (!request.beam) {  // whoever shares may share
      CHECK(request.cache_root.has_value());
      CHECK(block.root == request.cache_root);
      CHECK(!sequence.lossy());
    }
    if (late.is_to_be_filled(blocks[i])) continue;
    const auto slots = runner.content(blocks[i]);
    for (std::uint32_t offset = 0; offset < p && i * p + offset < in_blocks; ++offset) {
      CHECK_EQ(slots[offset].position, i * p + offset);
      CHECK_EQ(slots[offset].token, sequence.tokens()[i * p + offset]);
    }
  }
  // A fork of a hypothesis gets its group with the next plan.
  for (std::uint32_t position = in_blocks; position < sequence.computed() && !request.beam; ++position) {
    const ToyRunner::Slot& slot = runner.open_group(sequence.open_group)[position % testing::kToyGroup];
    CHECK_EQ(slot.position, position);
    CHECK_EQ(slot.token, sequence.tokens()[position]);
  }
}

void check_entry(const World& world, const kv::PrefixIndex& index, BlockId block, ToyRunner& runner) {
  const auto& entry = index.entry(block);
  const auto p = static_cast<std::uint32_t>(world.p);
  const auto tokens = index.tokens(block);
  const auto slots = runner.content(block);
  CHECK(!tokens.empty() && tokens.size() <= p);
  const std::uint32_t first = slots[0].position;
  CHECK_EQ(first % p, 0u);
  CHECK_EQ(first == 0, entry.parent == kv::PrefixIndex::kRoot);
  for (std::uint32_t offset = 0; offset < tokens.size(); ++offset) {
    CHECK_EQ(slots[offset].position, first + offset);
    CHECK_EQ(slots[offset].token, tokens[offset]);
    CHECK_EQ(slots[offset].finite, 1u);
    // What a row saw is what the one before saw, and that one itself.
    if (world.window != 0 || offset == 0) continue;
    CHECK_EQ(slots[offset].seen,
             slots[offset - 1].seen +
                 testing::toy_stored(slots[offset - 1].token, first + offset - 1, slots[offset - 1].seen));
  }
  if (entry.parent == kv::PrefixIndex::kRoot) {
    CHECK_EQ(slots[0].seen, 0u);
    return;
  }
  for (std::uint32_t at = 0; at < static_cast<std::uint32_t>(world.blocks); ++at) {
    const auto& parent = index.entry(BlockId(at));
    if (parent.id != entry.parent) continue;
    CHECK(parent.root == entry.root);
    CHECK_EQ(parent.num_tokens, p);
    const ToyRunner::Slot& last = runner.content(BlockId(at))[p - 1];
    CHECK_EQ(last.position + 1, first);
    if (world.window == 0)
      CHECK_EQ(slots[0].seen, last.seen + testing::toy_stored(last.token, last.position, last.seen));
    return;
  }
  CHECK_NE(world.window, 0);  // ancestors outlive their descendants, but for those that a window has passed by
}

}  // namespace

Patience::Known& Patience::known(const schedule::Sequence& sequence) {
  if (known_.size() <= sequence.id().value) known_.resize(sequence.id().value + 1);
  return known_[sequence.id().value];
}

// Who waits is served no more than his tenant's share lags behind: somebody of another tenant begins before him only where
// that one had been served no more.
void Patience::check_share(const engine::Engine& engine, const schedule::Sequence& waiting,
                           const schedule::Sequence& other) const {
  const std::uint32_t tenant = other.request().tenant;
  const double before = tenant < served_.size() ? served_[tenant] : 0.0;
  CHECK_LE(before, engine.scheduler().served(waiting.request().tenant));
}

void Patience::look(const World& world, const EngineRig& rig, bool ran, Duration longest_stall) {
  const auto policy = static_cast<schedule::Policy>(world.policy);
  const bool fair = policy == schedule::Policy::kFair;
  const bool in_order = policy == schedule::Policy::kFcfs;
  const std::uint32_t allowed = in_order ? 0 : static_cast<std::uint32_t>(world.overtakes);
  static thread_local std::vector<const schedule::Sequence*> started;
  started.clear();
  std::uint32_t waiting_sequences = 0;
  std::size_t waiting_tokens = 0;
  bool could_run = false;
  const TimePoint now = rig.clock.now();
  rig.engine.for_each_sequence([&](const schedule::Sequence& sequence) {
    Known& one = known(sequence);
    const bool waited = std::exchange(one.waits, !sequence.started);
    // A fork of a hypothesis has started by being made.
    if (waited && sequence.started && !sequence.request().beam) started.push_back(&sequence);
    waiting_sequences += one.waits;
    waiting_tokens += one.waits ? sequence.request().prompt.size() : 0;
    // A hypothesis is parked until its siblings have spoken.
    if (sequence.request().beam) return;
    could_run = could_run || !sequence.parked;
    const bool was_parked = std::exchange(one.parked, sequence.parked);
    if (one.parked && !was_parked) one.parked_since = now;
    if (one.parked) CHECK_LE((now - one.parked_since).count(), longest_stall.count());
  });
  CHECK_EQ(rig.admission.waiting_sequences(), waiting_sequences);
  CHECK_EQ(std::size_t{rig.admission.waiting_tokens()}, waiting_tokens);
  CHECK(ran || !could_run);
  rig.engine.for_each_sequence([&](const schedule::Sequence& sequence) {
    if (sequence.started || sequence.parked || sequence.passed) return;
    Known& one = known(sequence);
    for (const schedule::Sequence* other : started) {
      const bool same_line = !fair || other->request().tenant == sequence.request().tenant;
      if (same_line && other->id() > sequence.id()) CHECK_LE(++one.overtaken, allowed);
      if (!same_line) check_share(rig.engine, sequence, *other);
    }
  });
  served_.clear();
  for (std::uint32_t tenant = 0; tenant < kTenants; ++tenant) {
    served_.push_back(rig.engine.scheduler().served(tenant));
  }
}

void check_turn(const World& world, EngineRig& rig, ToyRunner& runner, const LateRunner& late, Counts& counts) {
  static thread_local std::vector<Seen> seen;
  seen.assign(static_cast<std::size_t>(world.blocks), Seen{});
  rig.engine.for_each_sequence(
      [&](const schedule::Sequence& sequence) { check_sequence(world, sequence, runner, late, seen, counts); });

  for (const kv::BlockTable& table : rig.engine.pinned()) {
    for (const BlockId block : table.blocks()) {
      if (seen.at(block.value).holders++ == 0) seen[block.value].root = CacheRoot{0, 1};
    }
  }
  const kv::PrefixIndex& index = rig.engine.prefix_index();
  std::uint32_t held = 0;
  std::uint32_t entries = 0;
  for (std::uint32_t at = 0; at < seen.size(); ++at) {
    const BlockId block(at);
    CHECK_EQ(rig.pool.holders(block), seen[at].holders);
    held += seen[at].holders > 0;
    counts.shared_blocks += seen[at].holders > 1;
    if (index.entry(block).id == kv::PrefixIndex::kRoot) continue;
    ++entries;
    check_entry(world, index, block, runner);
    if (seen[at].holders > 0) CHECK(seen[at].root == index.entry(block).root);
    if (seen[at].holders == 0) CHECK_NE(world.cache, 0);
  }
  CHECK_EQ(index.num_entries(), entries);
  CHECK_EQ(rig.pool.num_held(), held);
  CHECK_EQ(rig.pool.num_empty() + rig.pool.num_kept() + rig.pool.num_held(), static_cast<std::uint32_t>(world.blocks));
  rig.pool.check_invariants();
}

}  // namespace quire::sim
