#include "tests/sim/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace quire::sim {
namespace {

constexpr Field<World> kWorldFields[] = {
    {"blocks", &World::blocks},   {"p", &World::p},
    {"max_len", &World::max_len}, {"seqs", &World::seqs},
    {"rows", &World::rows},       {"policy", &World::policy},
    {"victim", &World::victim},   {"overtakes", &World::overtakes},
    {"swap", &World::swap},       {"layers", &World::layers},
    {"window", &World::window},   {"window2", &World::window2},
    {"window3", &World::window3}, {"window4", &World::window4},
    {"restore", &World::restore}, {"cache", &World::cache},
    {"draft", &World::draft},     {"bits", &World::bits},
    {"poison", &World::poison},   {"vocab", &World::vocab},
    {"spoilt", &World::spoilt},   {"tails", &World::partial_blocks},
    {"groups", &World::groups},   {"pin", &World::pin},
    {"row_ms", &World::row_ms},   {"save", &World::save},
    {"load", &World::load},       {"storm", &World::storm},
    {"stop", &World::stop},       {"broken", &World::broken},
    {"logits", &World::logits},   {"jump", &World::jump},
    {"depth", &World::depth},
};
constexpr Field<Arrival> kArrivalFields[] = {
    {"at", &Arrival::at},
    {"len", &Arrival::len},
    {"gen", &Arrival::gen},
    {"root", &Arrival::cache_namespace},
    {"stem", &Arrival::stem},
    {"shared", &Arrival::shared},
    {"from", &Arrival::from},
    {"tail", &Arrival::partial},
    {"seed", &Arrival::seed},
    {"n", &Arrival::n},
    {"logprob", &Arrival::logprob},
    {"stop", &Arrival::stop},
    {"tenant", &Arrival::tenant},
    {"prio", &Arrival::prio},
    {"deadline", &Arrival::deadline},
    {"beam", &Arrival::beam},
    {"best", &Arrival::best},
    {"penalty", &Arrival::penalty},
    {"kv", &Arrival::kv},
    {"sinks", &Arrival::sinks},
    {"recent", &Arrival::recent},
    {"budget", &Arrival::budget},
    {"cancel", &Arrival::cancel},
    {"cancels", &Arrival::cancels},
    {"read", &Arrival::read},
    {"rules", &Arrival::rules},
    {"top", &Arrival::top},
    {"score", &Arrival::score},
    {"grammar", &Arrival::grammar},
    {"pool", &Arrival::pool},
};

template <typename Record>
void write(std::ostream& out, const Record& record, std::span<const Field<Record>> fields) {
  const Record defaults;
  const char* separator = "";
  for (const auto& field : fields) {
    if (record.*field.member == defaults.*field.member) continue;
    out << separator << field.name << '=' << record.*field.member;
    separator = " ";
  }
}

template <typename Record>
void assign(Record& record, std::span<const Field<Record>> fields, const std::string& word) {
  const std::size_t equals = word.find('=');
  for (const auto& field : fields) {
    if (equals == std::string::npos || word.substr(0, equals) != field.name) continue;
    record.*field.member = std::stoi(word.substr(equals + 1));
    return;
  }
  throw std::invalid_argument("no such field: " + word);
}

// splitmix64 (Steele et al. 2014): one word of state, so that a hundred thousand seeds cost nothing.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int between(int low, int high) { return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1)); }
  bool one_in(int count) { return between(1, count) == 1; }
  template <typename... Ints>
  int one_of(Ints... choices) {
    const int all[] = {choices...};
    return all[between(0, static_cast<int>(sizeof...(choices)) - 1)];
  }

 private:
  std::uint64_t state_;
};

World random_world(Random& random) {
  World world;
  world.groups = random.one_in(8) ? 1 : 0;
  world.p = world.groups != 0 ? random.one_of(16, 32) : random.one_of(1, 2, 3, 4, 4, 5, 8, 8, 16, 64);
  const int longest = random.between(8, world.groups != 0 ? 100 : 48);
  world.blocks = (longest + world.p - 1) / world.p + (random.one_in(3) ? 0 : random.between(0, 12));
  world.seqs = random.between(1, 8);
  world.rows = world.seqs + random.one_of(0, 1, 3, 8, 20, 60);
  world.policy = random.between(0, 4);
  world.victim = random.between(0, 2);
  world.overtakes = random.one_of(0, 1, 2, 64);
  world.swap = random.one_in(3) ? random.between(1, 12) : 0;
  if (random.one_in(3)) {
    world.layers = random.one_of(1, 1, 2, 2, 2, 3, 4);
    for (const auto rule : {&World::window, &World::window2, &World::window3, &World::window4}) {
      world.*rule = random.one_of(0, random.between(2, 20), random.between(2, 20), -random.between(2, 20));
    }
    world.restore = random.one_of(1024, 4, 7, 12);
  }
  world.cache = random.one_in(4) ? 0 : 1;
  world.bits = random.one_of(64, 64, 3, 0);
  world.poison = random.one_in(4) ? 1 : 0;
  world.vocab = random.one_of(61, 61, 61, 3, 2);
  world.spoilt = random.one_in(12) ? 1 : 0;
  world.partial_blocks = random.one_in(6) ? 0 : 1;
  if (random.one_in(8) || world.layers > 1) world.max_len = random.between(2, longest);
  if (random.one_in(8)) world.pin = random.between(1, longest);
  if (random.one_in(3)) world.logits = random.between(1, 20);
  if (random.one_in(8)) world.row_ms = random.one_of(1, 3, 10);
  if (random.one_in(8)) world.storm = random.between(1, 4);
  if (random.one_in(16)) {
    world.stop = random.between(0, 40);
    world.broken = random.between(0, 1);
  }
  if (random.one_in(250)) {
    world.save = random.between(1, 30);
    world.load = world.save + random.between(1, 30);
  }
  return world;
}

Arrival random_arrival(Random& random, const World& world, int index, int& iteration) {
  Arrival one;
  if (!random.one_in(3)) iteration += random.one_of(0, 1, 1, 2, 5, 12);
  one.at = iteration;
  const int longest = world.layers > 1 ? world.max_len : world.blocks * world.p;
  one.len = random.between(1, std::max(1, std::min(longest - 1, world.groups != 0 ? 70 : 40)));
  one.gen = random.one_in(4) ? random.between(1, std::max(1, longest - one.len)) : random.between(1, 12);
  one.cache_namespace = random.one_of(1, 1, 1, 1, 2, 0);
  if (index > 0 && random.one_in(4)) {
    one.from = random.between(0, index - 1);
    one.shared = random.one_in(2) ? one.len : random.between(0, one.len);
  } else if (!random.one_in(4)) {
    one.stem = random.between(0, 2);
    one.shared = random.one_in(2) ? one.len : random.between(0, one.len);
  }
  one.partial = random.between(0, 9);
  one.seed = random.one_in(2) ? 0 : random.between(1, 3);
  one.logprob = random.one_in(3) ? 1 : 0;
  if (random.one_in(4)) one.n = random.between(2, 4);
  if (random.one_in(6)) one.stop = random.between(1, 6);
  if (random.one_in(4)) one.rules = random.between(1, 40);
  if (random.one_in(6)) one.grammar = random.between(1, 3);
  if (random.one_in(4)) one.top = random.between(1, 3);
  if (random.one_in(6)) {
    one.score = 1;
    if (random.one_in(2)) one.gen = 0;
  }
  if (random.one_in(8)) one.pool = random.between(1, 2);
  one.tenant = random.between(0, 2);
  one.prio = random.between(-1, 2);
  if (random.one_in(2)) one.deadline = one.at + random.between(0, 40);
  if (random.one_in(5)) {
    one.cancel = random.one_of(0, 0, 1, 2, 4, 9, 20);
    one.cancels = random.between(1, one.n);
  }
  if (random.one_in(8)) one.read = random.one_of(3, 10, 0);
  if (random.one_in(12)) {
    one.beam = random.between(1, 4);
    one.best = random.between(1, one.beam);
    one.penalty = random.between(0, 3);
  }
  return one;
}

// Groups that keep everything come first.
void set_layers(World& world) {
  constexpr int World::*kRules[] = {&World::window, &World::window2, &World::window3, &World::window4};
  world.layers = std::clamp(world.layers, 1, 4);
  for (int i = 0; i < 4; ++i) {
    int& rule = world.*kRules[i];
    if (i >= world.layers || std::abs(rule) < 2) rule = 0;  // a row that sees itself alone is no model
  }
  std::vector<int> rules;
  for (int i = 0; i < world.layers; ++i) rules.push_back(world.*kRules[i]);
  std::ranges::stable_partition(rules, [](int rule) { return rule == 0; });
  for (int i = 0; i < world.layers; ++i) world.*kRules[i] = rules[static_cast<std::size_t>(i)];
}

// Of a sequence of so many tokens, at a time.
int most_blocks(const World& world, int tokens) {
  const auto p = static_cast<std::uint32_t>(world.p);
  std::uint32_t most = 0;
  for (const kv::CacheGroup& group : groups_of(world)) {
    most += group.most_blocks(static_cast<std::uint32_t>(tokens), static_cast<std::uint32_t>(world.rows),
                              std::max(16u, p), p);
  }
  return static_cast<int>(most);
}

}  // namespace

std::vector<kv::CacheGroup> groups_of(const World& world) {
  using Kind = kv::CacheGroup::Kind;
  std::vector<kv::CacheGroup> groups;
  for (const int rule : {world.window, world.window2, world.window3, world.window4}) {
    if (static_cast<int>(groups.size()) == world.layers) break;
    const Kind kind = rule == 0 ? Kind::kFull : rule > 0 ? Kind::kWindow : Kind::kChunk;
    groups.push_back({kind, static_cast<std::uint32_t>(std::abs(rule))});
  }
  return groups;
}

std::span<const Field<World>> world_fields() { return kWorldFields; }
std::span<const Field<Arrival>> arrival_fields() { return kArrivalFields; }

std::string to_text(const Scenario& scenario) {
  std::ostringstream out;
  write<World>(out, scenario.world, kWorldFields);
  for (const Arrival& one : scenario.arrivals) {
    out << " | ";
    write<Arrival>(out, one, kArrivalFields);
  }
  return out.str();
}

Scenario parse(const std::string& text) {
  Scenario scenario;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "|") {
      scenario.arrivals.emplace_back();
    } else if (scenario.arrivals.empty()) {
      assign<World>(scenario.world, kWorldFields, word);
    } else {
      assign<Arrival>(scenario.arrivals.back(), kArrivalFields, word);
    }
  }
  return scenario;
}

Scenario valid(Scenario scenario) {
  World& world = scenario.world;
  world.groups = std::clamp(world.groups, 0, 1);
  world.p = std::clamp(world.p, 1, 256);
  if (world.groups != 0) world.p = (world.p + 15) / 16 * 16;
  world.blocks = std::clamp(world.blocks, (2 + world.p - 1) / world.p, 4096);
  const int longest = world.blocks * world.p;
  if (world.max_len <= 0 || world.max_len > longest) world.max_len = longest;
  world.max_len = std::max(world.max_len, 2);
  set_layers(world);
  const auto groups = groups_of(world);
  const auto is_chunk = [](const kv::CacheGroup& group) { return group.kind == kv::CacheGroup::Kind::kChunk; };
  if (std::ranges::all_of(groups, is_chunk)) world.spoilt = 0;  // cache_group.h
  // What is pinned stands beside a sequence of the greatest length.
  if (world.cache == 0 || world.spoilt != 0) world.pin = 0;
  world.pin = std::clamp(world.pin, 0, world.max_len - 1);
  world.seqs = std::clamp(world.seqs, 1, 64);
  world.rows = std::clamp(world.rows, std::min(world.seqs, 2), 4096);
  world.blocks = std::max(world.blocks, most_blocks(world, world.max_len) + most_blocks(world, world.pin));
  if (world.max_len == world.blocks * world.p) world.max_len = 0;
  world.logits = std::clamp(world.logits, 0, 4096);
  world.policy = std::clamp(world.policy, 0, 4);
  world.victim = std::clamp(world.victim, 0, 2);
  world.overtakes = std::max(world.overtakes, 0);
  world.swap = std::clamp(world.swap, 0, 4096);
  world.restore = std::max(world.restore, 1);
  world.cache = std::clamp(world.cache, 0, 1);
  world.bits = std::clamp(world.bits, 0, 64);
  world.vocab = std::clamp(world.vocab, 2, 997);
  world.row_ms = std::max(world.row_ms, 0);
  world.storm = std::max(world.storm, 0);
  world.draft = std::clamp(world.draft, 0, 64);
  world.depth = std::clamp(world.depth, 1, 2);
  if (world.save < 0) world.load = -1;
  if (world.load >= 0) world.load = std::max(world.load, world.save + 1);
  // What is in flight comes first, and what a storm left to be done.
  if (world.depth > 1 && world.load >= 0) world.load = std::max(world.load, world.save + 6);
  world.broken = std::clamp(world.broken, 0, world.stop < 0 ? 0 : 1);
  const int max_len = world.max_len == 0 ? world.blocks * world.p : world.max_len;
  for (std::size_t i = 0; i < scenario.arrivals.size(); ++i) {
    Arrival& one = scenario.arrivals[i];
    one.at = std::max(one.at, i == 0 ? 0 : scenario.arrivals[i - 1].at);
    // A beam search is one sequence to its client, greedy, and keeps everything.
    if (one.beam > 0) one.kv = one.rules = one.grammar = one.score = one.pool = one.top = 0;
    one.pool = one.kv != 0 ? 0 : std::clamp(one.pool, 0, 2);
    if (one.pool != 0) one.gen = one.score = one.rules = one.grammar = 0;
    one.score = one.kv != 0 ? 0 : std::clamp(one.score, 0, 1);
    const int least = one.score != 0 || one.pool != 0 ? 0 : 1;
    one.len = std::clamp(one.len, 1, max_len - least);
    one.gen = std::clamp(one.gen, least, max_len - one.len);
    one.top = std::clamp(one.top, 0, 256);
    one.cache_namespace = std::max(one.cache_namespace, 0);
    one.from = std::clamp(one.from, -1, static_cast<int>(i) - 1);
    one.shared = std::clamp(one.shared, 0, one.len);
    one.n = std::clamp(one.n, 1, one.gen == 0 || one.beam > 0 ? 1 : 8);
    one.stop = std::clamp(one.stop, 0, one.gen);
    one.rules = std::max(one.rules, 0);
    one.grammar = std::clamp(one.grammar, 0, 3);
    one.kv = !kv::all_full(groups) ? 0 : std::clamp(one.kv, 0, 2);
    one.sinks = std::max(one.sinks, 1);
    one.recent = std::max(one.recent, 1);
    one.budget = std::max(one.budget, 0);
    one.beam = std::clamp(one.beam, 0, std::min({world.seqs, world.vocab - (one.stop > 0 ? 1 : 0), 8}));
    one.best = std::clamp(one.best, 1, std::max(one.beam, 1));
    one.cancels = std::clamp(one.cancels, 1, one.beam > 0 ? one.best : one.n);
    one.read = std::max(one.read, 0);
  }
  return scenario;
}

Scenario random_scenario(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  World& world = scenario.world;
  world = random_world(random);
  world.jump = seed % 4 != 0;
  if (seed % 5 == 0) world.rows = 2 + static_cast<int>(seed / 5 % 4);  // now and then fewer than sequences
  if (seed % 3 == 0) world.draft = 1 + static_cast<int>(seed / 3 % 12);
  if (seed % 3 == 1 || seed % 21 == 0) world.depth = 2;
  // Now and then sequences are long enough to fill a stream that nobody reads, or to open spans of 256 positions.
  const bool spans = random.one_in(40);
  const bool streams = !spans && random.one_in(20);
  if (spans) {
    world.p = world.groups != 0 ? random.one_of(16, 32) : random.one_of(4, 16, 32, 64);
    world.blocks = random.between(300, 1000) / world.p;
    world.rows = world.seqs + random.one_of(20, 100, 400);
    world.spoilt = 0;
  } else if (streams) {
    world.blocks = std::max(world.blocks, 120 / world.p);
  }
  int iteration = 0;
  // Now and then one tenant's small requests drip in, one after the other, while a large one of another waits.
  const bool drips = !spans && !streams && random.one_in(80);
  if (drips) {
    world.policy = 3;
    world.seqs = random.between(1, 2);
  }
  const int count = drips               ? random.between(20, 30)
                    : spans             ? random.between(1, 3)
                    : random.one_in(40) ? random.between(8, 16)
                                        : random.between(1, 7);
  for (int i = 0; i < count; ++i) {
    Arrival one = random_arrival(random, world, i, iteration);
    if (spans) {
      one.len = random.between(1, random.one_in(3) ? 900 : 500);
      one.gen = random.between(1, 60);
      one.kv = random.between(0, 2);
      one.sinks = random.between(1, 3);
      one.budget = random.between(0, 6);
      one.beam = 0;
    } else if (streams) {
      one.gen = random.between(60, 90);
      one.read = random.one_of(1, 1, 10, 30, 0);
      one.beam = 0;
    }
    if (drips) {
      one = Arrival{.at = i < 2 ? i : one.at, .len = i == 1 ? 40 : random.between(1, 9), .gen = random.between(1, 4)};
      one.partial = i % 10;
      one.tenant = i == 1 ? 1 : random.one_in(4) ? 2 : 0;
    }
    scenario.arrivals.push_back(one);
  }
  return valid(scenario);
}

}  // namespace quire::sim
