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

// A block as the tables have it.
struct Seen {
  std::uint32_t holders = 0;
  std::uint32_t group = 0;
  std::optional<CacheNamespace> cache_namespace;
};

void check_group(const World& world, const schedule::Sequence& sequence, std::uint32_t group, ToyRunner& runner,
                 const LateRunner& late, std::vector<Seen>& seen, Counts& counts) {
  const auto p = static_cast<std::uint32_t>(world.p);
  const flow::Request& request = sequence.request();
  const auto blocks = sequence.table.blocks(group);
  const kv::CacheGroup rule = sequence.table.groups()[group];
  const std::uint32_t computed = sequence.progress.computed();
  CHECK_LE(computed, blocks.size() * p);
  const std::uint32_t in_blocks = world.groups != 0 ? computed / testing::kToyGroup * testing::kToyGroup : computed;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == kNoBlock) {
      CHECK(sequence.lossy() || !rule.full());
      // The next row reads none of it.
      if (!rule.full()) CHECK(rule.first_needed(computed) >= std::min((i + 1) * p, computed));
      ++counts.dropped_blocks;
      continue;
    }
    Seen& block = seen.at(blocks[i].value);
    if (block.holders++ == 0) {
      block.cache_namespace = request.cache_namespace;
      block.group = group;
    } else if (!request.beam) {  // whoever shares may share
      CHECK(request.cache_namespace.has_value());
      CHECK(block.cache_namespace == request.cache_namespace);
      CHECK(!sequence.lossy());
    }
    CHECK_EQ(block.group, group);
    if (late.is_to_be_filled(blocks[i])) continue;
    const auto slots = runner.content(blocks[i]);
    for (std::uint32_t offset = 0; offset < p && i * p + offset < in_blocks; ++offset) {
      CHECK_EQ(slots[offset].position, i * p + offset);
      CHECK_EQ(slots[offset].token, sequence.tokens()[i * p + offset]);
      CHECK_EQ(slots[offset].group, group);
    }
  }
  // A fork of a hypothesis gets its group with the next plan.
  for (std::uint32_t position = in_blocks; position < computed && !request.beam; ++position) {
    const ToyRunner::Slot& slot = runner.residual_group(sequence.residual_group, group)[position % testing::kToyGroup];
    CHECK_EQ(slot.position, position);
    CHECK_EQ(slot.token, sequence.tokens()[position]);
  }
}

void check_sequence(const World& world, const schedule::Sequence& sequence, ToyRunner& runner, const LateRunner& late,
                    std::vector<Seen>& seen, Counts& counts) {
  CHECK_LE(sequence.progress.computed(), sequence.num_tokens());
  counts.paused += sequence.paused;
  if (sequence.state == schedule::State::kWaiting) {
    CHECK(sequence.table.empty());
    if (sequence.swapped.empty()) CHECK_EQ(sequence.progress.computed(), 0u);
    CHECK_LE(sequence.queue.overtaken, static_cast<std::uint32_t>(world.overtakes));
    return;
  }
  for (std::uint32_t group = 0; group < sequence.table.num_groups(); ++group) {
    check_group(world, sequence, group, runner, late, seen, counts);
  }
}

bool has_full_slots(const kv::PrefixIndex& index, std::span<const kv::CacheGroup> groups, std::uint32_t place) {
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (groups[group].full() && index.slots_at(place)[group] == kNoBlock) return false;
  }
  return true;
}

// A slot that nobody holds can be reached: its entry has a block of every full group, and so has the parent.
void check_reach(const EngineRig& rig, std::uint32_t place) {
  const kv::PrefixIndex& index = rig.engine.prefix_index();
  const auto is_free = [&](BlockId block) { return block != kNoBlock && rig.pool.holders(block) == 0; };
  if (std::ranges::none_of(index.slots_at(place), is_free)) return;
  CHECK(has_full_slots(index, rig.pool.groups(), place));
  const kv::EntryId parent = index.entry_at(place).parent;
  if (parent == kv::PrefixIndex::kRoot) return;
  for (std::uint32_t at = 0; at < index.num_places(); ++at) {
    if (index.entry_at(at).id == parent) CHECK(has_full_slots(index, rig.pool.groups(), at));
  }
}

void check_entry(const World& world, const EngineRig& rig, std::uint32_t place, ToyRunner& runner) {
  const kv::PrefixIndex& index = rig.engine.prefix_index();
  const auto& entry = index.entry_at(place);
  const auto p = static_cast<std::uint32_t>(world.p);
  const auto tokens = index.tokens_at(place);
  CHECK(!tokens.empty() && tokens.size() <= p);
  const std::uint32_t first = entry.row * p;
  CHECK_EQ(first == 0, entry.parent == kv::PrefixIndex::kRoot);
  const bool sees_all = kv::all_full(rig.pool.groups());
  const std::uint64_t weight = std::uint64_t{rig.pool.num_groups()} * rig.pool.num_groups();
  for (std::uint32_t group = 0; group < rig.pool.num_groups(); ++group) {
    const BlockId block = index.slots_at(place)[group];
    if (block == kNoBlock) continue;
    const auto slots = runner.content(block);
    for (std::uint32_t offset = 0; offset < tokens.size(); ++offset) {
      CHECK_EQ(slots[offset].position, first + offset);
      CHECK_EQ(slots[offset].token, tokens[offset]);
      CHECK_EQ(slots[offset].group, group);
      CHECK_EQ(slots[offset].finite, 1u);
      // A row attends to all that the row before attended to, and to that row.
      if (!sees_all || offset == 0) continue;
      const ToyRunner::Slot& before = slots[offset - 1];
      CHECK_EQ(slots[offset].seen,
               before.seen + weight * testing::toy_stored(before.token, first + offset - 1, before.seen));
    }
    if (first == 0) CHECK_EQ(slots[0].seen, 0u);
  }
  check_reach(rig, place);
}

}  // namespace

Patience::Known& Patience::known(const schedule::Sequence& sequence) {
  if (known_.size() <= sequence.id().value) known_.resize(sequence.id().value + 1);
  return known_[sequence.id().value];
}

// A sequence of another tenant is admitted before a waiting one only if that tenant had been served no more than the
// waiting sequence's.
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
    const bool waited = std::exchange(one.waits, !sequence.queue.started);
    // A fork of a hypothesis has started by being made.
    if (waited && sequence.queue.started && !sequence.request().beam) started.push_back(&sequence);
    waiting_sequences += one.waits;
    waiting_tokens += one.waits ? sequence.request().prompt.size() : 0;
    // A hypothesis is parked until its siblings have spoken.
    if (sequence.request().beam) return;
    could_run = could_run || !sequence.paused;
    const bool was_paused = std::exchange(one.paused, sequence.paused);
    if (one.paused && !was_paused) one.paused_since = now;
    if (one.paused) CHECK_LE((now - one.paused_since).count(), longest_stall.count());
  });
  CHECK_EQ(rig.admission.waiting_sequences(), waiting_sequences);
  CHECK_EQ(std::size_t{rig.admission.waiting_tokens()}, waiting_tokens);
  CHECK(ran || !could_run);
  rig.engine.for_each_sequence([&](const schedule::Sequence& sequence) {
    if (sequence.queue.started || sequence.paused || sequence.queue.skipped) return;
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

void check_iteration(const World& world, EngineRig& rig, ToyRunner& runner, const LateRunner& late, Counts& counts) {
  static thread_local std::vector<Seen> seen;
  seen.assign(static_cast<std::size_t>(world.blocks), Seen{});
  rig.engine.for_each_sequence(
      [&](const schedule::Sequence& sequence) { check_sequence(world, sequence, runner, late, seen, counts); });

  for (const kv::BlockTable& table : rig.engine.pinned()) {
    for (std::uint32_t group = 0; group < table.num_groups(); ++group) {
      for (const BlockId block : table.blocks(group)) {
        if (block == kNoBlock) continue;
        if (seen.at(block.value).holders++ == 0) seen[block.value] = {1, group, CacheNamespace{0, 1}};
        CHECK_EQ(seen[block.value].group, group);
      }
    }
  }
  const kv::PrefixIndex& index = rig.engine.prefix_index();
  std::uint32_t held = 0;
  for (std::uint32_t at = 0; at < seen.size(); ++at) {
    const BlockId block(at);
    CHECK_EQ(rig.pool.holders(block), seen[at].holders);
    held += seen[at].holders > 0;
    counts.shared_blocks += seen[at].holders > 1;
    if (index.entry(block).id == kv::PrefixIndex::kRoot) continue;
    if (seen[at].holders > 0) CHECK(seen[at].cache_namespace == index.entry(block).cache_namespace);
    if (seen[at].holders == 0) CHECK_NE(world.cache, 0);
  }
  for (std::uint32_t place = 0; place < index.num_places(); ++place) {
    if (index.entry_at(place).id != kv::PrefixIndex::kRoot) check_entry(world, rig, place, runner);
  }
  index.check_invariants();
  CHECK_EQ(rig.pool.num_held(), held);
  CHECK_EQ(rig.pool.num_empty() + rig.pool.num_cached_blocks() + rig.pool.num_held(),
           static_cast<std::uint32_t>(world.blocks));
  rig.pool.check_invariants();
}

}  // namespace quire::sim
