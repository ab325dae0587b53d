#include "core/grammar/automaton/masks.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <set>
#include <utility>

namespace quire::grammar {
namespace {

constexpr std::size_t kRoomMasks = 512;
constexpr std::size_t kWordsPerReading = 8;  // counted for the Reading itself
constexpr std::size_t kWordsPerToken = 8;    // mask words that cost as much to merge as one token of a list
constexpr std::size_t kMaxPlaces = 500;      // positions that prepare() visits
constexpr std::uint32_t kManyNodes = 512;    // nodes below a node from which the search for loops may pay

void set_bit(std::span<std::uint32_t> mask, TokenId token) {
  const auto bit = static_cast<std::uint32_t>(token);
  mask[bit / 32] |= 1U << bit % 32;
}

}  // namespace

// The cache's memory is not initialised, so the system provides its pages only as they are written to.
Masks::Masks(const Automaton& automaton, const Vocabulary& vocabulary)
    : automaton_(automaton),
      vocabulary_(vocabulary),
      frontier_(automaton),
      room_words_(kRoomMasks * vocabulary.mask_words() + vocabulary.tree().size()),
      room_(std::make_unique_for_overwrite<std::uint32_t[]>(room_words_)),
      mask_(vocabulary.mask_words()) {
  std::uint32_t longest = 0;
  for (const Vocabulary::Node& node : vocabulary.tree()) longest = std::max<std::uint32_t>(longest, node.depth);
  loops_.resize(longest + 1);
  open_.reserve(kMaxStacks);
  next_.reserve(kMaxStacks);
  find_follow();
  forget();
}

// Finds for every rule the bytes that its callers read after it; for equivalent states of several rules, the union.
void Masks::find_follow() {
  constexpr std::uint32_t kNobody = UINT32_MAX;
  const auto num_states = static_cast<std::uint32_t>(automaton_.size());
  unit_of_.assign(num_states, kNobody);
  const auto add_unit = [this](std::uint32_t first) {
    if (unit_of_[first] != kNobody) return;
    const auto unit = static_cast<std::uint32_t>(follow_.size());
    follow_.emplace_back();
    std::vector<std::uint32_t> open{first};
    const auto reach = [&](std::uint32_t s) {
      if (s == Automaton::kNone || unit_of_[s] != kNobody) return;
      unit_of_[s] = unit;
      open.push_back(s);
    };
    unit_of_[first] = unit;
    while (!open.empty()) {
      const std::uint32_t s = open.back();
      open.pop_back();
      for (const Automaton::Run& run : automaton_.runs_of(s)) reach(run.target);
      for (const Automaton::Call& call : automaton_.calls_of(s)) reach(call.back);
    }
  };
  add_unit(Automaton::kEnd);
  add_unit(automaton_.start);
  for (const Automaton::Call& call : automaton_.calls) add_unit(call.callee);
  for (std::uint32_t s = 0; s < num_states; ++s) add_unit(s);

  std::vector<std::pair<std::uint32_t, std::uint32_t>> inherits;  // a rule, a caller that may end right after it
  for (std::uint32_t s = 0; s < num_states; ++s) {
    for (const Automaton::Call& call : automaton_.calls_of(s)) {
      const std::uint32_t callee = unit_of_[call.callee];
      const Stack back{call.back, Stacks::kBottom};
      const bool goes_on = call.back != Automaton::kNone && frontier_.begin(local_stacks_, {&back, 1});
      for (const Stack& stack : goes_on ? frontier_.at(0) : std::span<const Stack>{}) {
        for (const Automaton::Run& run : automaton_.runs_of(stack.state)) {
          for (std::uint32_t b = run.first; b <= run.last; ++b) follow_[callee].set(b);
        }
      }
      if (call.back != Automaton::kNone && frontier_.lost()) follow_[callee].set();
      if (!goes_on || frontier_.at_bottom(0)) inherits.emplace_back(callee, unit_of_[s]);
      local_stacks_.truncate(1);
    }
  }
  std::sort(inherits.begin(), inherits.end());
  inherits.erase(std::unique(inherits.begin(), inherits.end()), inherits.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [callee, caller] : inherits) {
      const ByteSet all = follow_[callee] | follow_[caller];
      changed |= all != follow_[callee];
      follow_[callee] = all;
    }
  }

  const std::vector<std::uint32_t> rule_of = unit_of_;
  for (std::uint32_t s = 0; s < num_states; ++s) {
    const std::uint32_t first = class_of(0, s);
    if (rule_of[first] == rule_of[s]) continue;
    if (unit_of_[first] == rule_of[first]) {
      unit_of_[first] = static_cast<std::uint32_t>(follow_.size());
      follow_.push_back(ByteSet(follow_[rule_of[first]]));
    }
    follow_[unit_of_[first]] |= follow_[rule_of[s]];
  }
}

bool Masks::may_go_on(std::uint32_t node, const ByteSet& follow) const {
  const auto tree = vocabulary_.tree();
  for (std::uint32_t child = node + 1; child < tree[node].end; child = tree[child].end) {
    if (follow[tree[child].byte]) return true;
  }
  return false;
}

bool Masks::advance(Stacks& stacks, std::vector<Stack>& tops, std::string_view bytes) {
  const std::size_t num_nodes = stacks.size();
  if (bytes.empty()) return false;
  bool goes_on = frontier_.begin(stacks, tops);
  for (std::size_t i = 0; i < bytes.size() && goes_on; ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    goes_on = i + 1 < bytes.size() ? frontier_.step(stacks, i, byte) : frontier_.last_step(stacks, i, byte, tops);
  }
  if (goes_on) {  // a mask would begin() here: find out if that is lost
    const std::size_t num_needed = stacks.size();
    frontier_.begin(stacks, tops);
    stacks.truncate(num_needed);
  }
  if (frontier_.lost()) tops.clear();
  if (!goes_on) stacks.truncate(num_nodes);
  return goes_on || frontier_.lost();
}

bool Masks::allowed(const Stacks& stacks, std::span<const Stack> tops, std::span<std::uint32_t> mask,
                    std::uint64_t most_work) {
  for (int tries = 0; tries < 2; ++tries) {  // with the room left; if the cache was dropped, with all of it
    const std::uint32_t round = round_;
    std::fill(mask.begin(), mask.end(), 0);
    if (find(stacks, tops, most_work, &mask)) return true;
    if (round_ == round) break;
  }
  std::fill(mask.begin(), mask.end(), 0);
  return false;
}

// Makes the mask from readings. Without a mask (prepare()) it only finds the readings, and only new ones count as work.
bool Masks::find(const Stacks& stacks, std::span<const Stack> tops, std::uint64_t most_work,
                 std::span<std::uint32_t>* mask) {
  ++num_masks_;
  std::uint64_t work = 0;
  for (std::uint32_t band = 0; band < kNumBands; ++band) {
    if (vocabulary_.tree()[0].reach <= above(band)) break;  // no token is that long
    open_.clear();
    for (const Stack& top : tops) {
      if (top.state != Automaton::kEnd) open_.push_back({band, top});
    }
    while (!open_.empty()) {
      next_.clear();
      for (const Open& open : open_) {
        const std::uint64_t before = this->work();
        if (++work > most_work) return false;
        Reading* const reading = reading_of(band, open, most_work - work);
        if (reading == nullptr) return false;
        if (reading->last_mask != num_masks_) {
          reading->last_mask = num_masks_;
          work += mask != nullptr ? reading->work : this->work() - before;
          if (work > most_work) return false;
          if (mask != nullptr) merge(*reading, *mask);
        }
        if (reading->ends == kNoNodes || open.stack.below == Stacks::kBottom) continue;
        next_.push_back({reading->ends, stacks.pop(open.stack.below)});
      }
      std::swap(open_, next_);
      if (open_.size() < 2) continue;
      std::sort(open_.begin(), open_.end());
      open_.erase(std::unique(open_.begin(), open_.end()), open_.end());
    }
  }
  return true;
}

std::uint32_t Masks::class_of(std::uint32_t band, std::uint32_t state) const {
  return band < kAlikeBytes.size() ? automaton_.alike[band][state] : state;
}

// Null: it takes more than `most_work`, or the whole cache had to be dropped.
Masks::Reading* Masks::reading_of(std::uint32_t band, const Open& open, std::uint64_t most_work) {
  const std::uint32_t state = class_of(band, open.stack.state);
  const std::uint64_t key = std::uint64_t{open.nodes} << 32 | state;
  if (const auto found = readings_.find(key); found != readings_.end()) return &found->second;
  const std::uint64_t begin_work = work();
  const Stack alone{state, Stacks::kBottom};
  std::fill(mask_.begin(), mask_.end(), 0);
  nodes_.clear();
  bool found_all = true;
  if (frontier_.begin(local_stacks_, {&alone, 1})) {
    read_nodes(lists_[open.nodes], roots_);
    const ByteSet& follow = follow_[unit_of_[class_of(0, state)]];
    loops_[0] = find_loops(band, 0);
    for (std::size_t i = 0; i < roots_.size() && found_all; ++i) {
      if (roots_[i] != 0 && frontier_.at_bottom(0) && may_go_on(roots_[i], follow))
        nodes_.push_back(roots_[i]);  // the rule may match nothing
      found_all = walk(roots_[i], band, follow, begin_work + most_work);
    }
  }
  local_stacks_.truncate(1);
  return found_all ? keep(key, band, work() - begin_work) : nullptr;
}

Vocabulary::Classes Masks::find_loops(std::uint32_t band, std::size_t depth) {
  if (frontier_.at_bottom(depth)) return 0;
  Vocabulary::Classes loops = Vocabulary::kCharacter - 1;
  for (std::uint8_t byte = 0; byte < 128; ++byte) {
    const Vocabulary::Classes own = Vocabulary::Classes{1} << Vocabulary::ascii_class(byte);
    if ((loops & own) == 0) continue;
    if (!frontier_.step(local_stacks_, depth, byte) || !leads_back(band, depth + 1, depth)) loops &= ~own;
  }
  if (loops == 0) return 0;
  for (std::uint8_t byte = 0xC2; byte <= 0xF4; ++byte) {
    const std::uint8_t first = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t last = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    const std::uint32_t left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    if (!frontier_.step(local_stacks_, depth, byte)) return loops;
    if (!characters_lead_back(band, depth + 1, depth, left, first, last)) return loops;
  }
  return loops | Vocabulary::kCharacter;
}

bool Masks::leads_back(std::uint32_t band, std::size_t depth, std::size_t then) const {
  const auto stacks = frontier_.at(depth);
  const auto stacks_then = frontier_.at(then);
  if (stacks.size() != stacks_then.size()) return false;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    Stack a = stacks[i];
    Stack b = stacks_then[i];
    while (class_of(band, a.state) == class_of(band, b.state) && a.state != Automaton::kEnd) {
      a = local_stacks_.pop(a.below);
      b = local_stacks_.pop(b.below);
    }
    if (a.state != Automaton::kEnd || b.state != Automaton::kEnd) return false;
  }
  return true;
}

// True if every completion of a character leads back: `left` more bytes, the next of them from first to last.
bool Masks::characters_lead_back(std::uint32_t band, std::size_t depth, std::size_t then, std::uint32_t left,
                                 std::uint8_t first, std::uint8_t last) {
  if (frontier_.at(depth).size() != 1) return false;
  std::uint32_t next = first;
  for (const Automaton::Run& run : automaton_.runs_of(frontier_.at(depth)[0].state)) {
    if (run.last < next) continue;
    if (run.first > next || !frontier_.step(local_stacks_, depth, static_cast<std::uint8_t>(next))) return false;
    const bool back = left == 1 ? leads_back(band, depth + 1, then)
                                : characters_lead_back(band, depth + 1, then, left - 1, 0x80, 0xBF);
    if (!back) return false;
    next = run.last + 1U;
    if (next > last) return true;
  }
  return false;
}

bool Masks::walk(std::uint32_t root, std::uint32_t band, const ByteSet& follow, std::uint64_t end_work) {
  const auto tree = vocabulary_.tree();
  const std::uint32_t base = tree[root].depth + 1U;
  const Vocabulary::Classes loops_of_reading = loops_[0];
  if ((vocabulary_.classes(root) & Vocabulary::kEndsWithin) != 0) loops_[0] = 0;
  std::uint32_t i = root + 1;
  while (i < tree[root].end) {
    ++num_nodes_seen_;
    if (work() > end_work) return false;
    const Vocabulary::Node& node = tree[i];
    const std::uint32_t before = node.depth - base;
    const Vocabulary::Classes classes = vocabulary_.classes(i) & ~Vocabulary::kEndsWithin;
    const bool in_band = node.depth <= upto(band) && node.reach > above(band);
    if (in_band && (classes & ~loops_[before]) == 0 && node.reach <= upto(band) && node.reach < UINT8_MAX) {
      mark(vocabulary_.tokens_in(i), above(band));
      i = node.end;
    } else if (in_band && frontier_.step(local_stacks_, before, node.byte)) {
      if (node.depth > above(band)) mark(vocabulary_.tokens_at(i), 0);
      if (frontier_.at_bottom(before + 1) && node.depth < upto(band) && may_go_on(i, follow)) nodes_.push_back(i);
      loops_[before + 1] = loops_behind(i, band, before);
      i = frontier_.only_bottom(before + 1) ? node.end : i + 1;
    } else {
      i = node.end;
    }
  }
  loops_[0] = loops_of_reading;
  return true;
}

// find_loops() after node `i`, at depth before + 1; 0 where the search would probably cost more than it saves.
Vocabulary::Classes Masks::loops_behind(std::uint32_t i, std::uint32_t band, std::size_t before) {
  const Vocabulary::Node& node = vocabulary_.tree()[i];
  const Vocabulary::Classes classes = vocabulary_.classes(i);
  const Vocabulary::Classes own =
      node.byte < 128 ? Vocabulary::Classes{1} << Vocabulary::ascii_class(node.byte) : Vocabulary::kCharacter;
  const bool well_formed = (classes & Vocabulary::kOwnMalformed) == 0;
  if (well_formed && (own & ~loops_[before]) == 0) return loops_[before];
  const bool within = (classes & Vocabulary::kEndsWithin) != 0;
  return !within && node.end - i >= kManyNodes ? find_loops(band, before + 1) : 0;
}

void Masks::mark(std::span<const TokenId> tokens, std::uint32_t above) {
  for (const TokenId token : tokens) {
    if (above == 0 || vocabulary_.piece(token).size() > above) set_bit(mask_, token);
  }
}

Masks::Reading* Masks::keep(std::uint64_t key, std::uint32_t band, std::uint64_t work) {
  if (!std::is_sorted(nodes_.begin(), nodes_.end())) std::sort(nodes_.begin(), nodes_.end());
  nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
  std::uint32_t num_tokens = 0;
  for (const std::uint32_t word : mask_) num_tokens += static_cast<std::uint32_t>(std::popcount(word));
  const bool few = num_tokens < mask_.size() / kWordsPerToken;
  const std::size_t num_words = few ? num_tokens : mask_.size();
  const std::size_t words_of_nodes = std::min(nodes_.size(), node_words());
  if (num_used_ + num_words + words_of_nodes + kWordsPerReading > room_words_) {
    forget();
    return nullptr;
  }
  num_used_ += kWordsPerReading;
  Reading reading{static_cast<std::uint32_t>(num_used_), few ? num_tokens : kIsMask, kNoNodes,
                  static_cast<std::uint32_t>(work), 0};
  std::uint32_t* out = room_.get() + num_used_;
  num_used_ += num_words;
  if (few) {
    for (std::uint32_t i = 0; i < mask_.size(); ++i) {
      for (std::uint32_t word = mask_[i]; word != 0; word &= word - 1) {
        *out++ = 32 * i + static_cast<std::uint32_t>(std::countr_zero(word));
      }
    }
  } else {
    std::copy(mask_.begin(), mask_.end(), out);
  }
  if (!nodes_.empty()) reading.ends = keep_nodes(band);
  return &(readings_[key] = reading);
}

// Returns the number of the list that equals nodes_, and makes it if there is none.
std::uint32_t Masks::keep_nodes(std::uint32_t band) {
  std::uint64_t hash = band;
  for (const std::uint32_t node : nodes_) hash = (hash ^ node) * 0x9E3779B97F4A7C15 + (hash >> 29);
  const auto [first, last] = list_with_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const NodeList& list = lists_[at->second];
    if (list.band != band || list.size != nodes_.size()) continue;
    read_nodes(list, roots_);
    if (roots_ == nodes_) return at->second;
  }
  const auto number = static_cast<std::uint32_t>(lists_.size());
  const bool is_mask = nodes_.size() > node_words();
  const std::span<std::uint32_t> out{room_.get() + num_used_, is_mask ? node_words() : nodes_.size()};
  lists_.push_back({band, static_cast<std::uint32_t>(num_used_), static_cast<std::uint32_t>(nodes_.size()), is_mask});
  list_with_hash_.emplace(hash, number);
  num_used_ += out.size();
  if (is_mask) {
    std::fill(out.begin(), out.end(), 0);
    for (const std::uint32_t node : nodes_) out[node / 32] |= 1U << node % 32;
  } else {
    std::copy(nodes_.begin(), nodes_.end(), out.begin());
  }
  return number;
}

void Masks::read_nodes(const NodeList& list, std::vector<std::uint32_t>& nodes) const {
  const std::uint32_t* const kept = room_.get() + list.offset;
  nodes.clear();
  if (!list.is_mask) nodes.assign(kept, kept + list.size);
  for (std::uint32_t i = 0; list.is_mask && i < node_words(); ++i) {
    for (std::uint32_t word = kept[i]; word != 0; word &= word - 1) {
      nodes.push_back(32 * i + static_cast<std::uint32_t>(std::countr_zero(word)));
    }
  }
}

// Extends texts breadth-first by one byte, one for all bytes that lead to the same state. Of the positions with the
// same look_of() only the first is visited.
void Masks::prepare(std::uint64_t most_work) {
  const std::uint64_t end_work = work() + most_work;
  const std::uint32_t round = round_;
  std::set<NumberRow> seen;
  std::deque<Place> places;
  const auto come_to = [&](Place&& place) {
    if (seen.size() < kMaxPlaces && seen.insert(look_of(place)).second) places.push_back(std::move(place));
  };
  Place start;
  start.tops.push_back({automaton_.start, Stacks::kBottom});
  frontier_.settle(start.stacks, start.tops);
  come_to(std::move(start));
  for (; !places.empty() && work() < end_work && num_used_ < room_words_ / 2; places.pop_front()) {
    Place& place = places.front();
    if (!find(place.stacks, place.tops, end_work - work(), nullptr) || round_ != round) return;
    const std::bitset<256> bytes = bytes_to_try(place);
    for (std::size_t b = 0; b < bytes.size(); ++b) {
      if (!bytes[b]) continue;
      Place next = place;
      const char byte = static_cast<char>(b);
      if (advance(next.stacks, next.tops, {&byte, 1})) come_to(std::move(next));
    }
  }
}

std::bitset<256> Masks::bytes_to_try(Place& place) {
  std::bitset<256> bytes;
  const std::size_t num_nodes = place.stacks.size();
  if (!frontier_.begin(place.stacks, place.tops)) return bytes;
  for (const Stack& stack : frontier_.at(0)) {
    const auto runs = automaton_.runs_of(stack.state);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto same = [&](const Automaton::Run& run) { return run.target == runs[i].target; };
      if (std::none_of(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(i), same)) bytes.set(runs[i].first);
    }
  }
  place.stacks.truncate(num_nodes);
  return bytes;
}

// The three topmost states of every stack, or their equivalents.
NumberRow Masks::look_of(const Place& place) const {
  NumberRow look;
  for (Stack stack : place.tops) {
    for (int height = 0; height < 3; ++height) {
      look.push_back(class_of(0, stack.state));
      if (stack.state != Automaton::kEnd) stack = place.stacks.pop(stack.below);
    }
  }
  return look;
}

void Masks::forget() {
  readings_.clear();
  list_with_hash_.clear();
  ++round_;
  room_[0] = 0;
  num_used_ = 1;
  lists_.clear();
  for (std::uint32_t band = 0; band < kNumBands; ++band) lists_.push_back({band, 0, 1, false});
}

void Masks::merge(const Reading& reading, std::span<std::uint32_t> mask) const {
  const std::uint32_t* kept = room_.get() + reading.offset;
  if (reading.num_tokens == kIsMask) {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= kept[i];
  } else {
    for (std::uint32_t i = 0; i < reading.num_tokens; ++i) set_bit(mask, static_cast<TokenId>(kept[i]));
  }
}

}  // namespace quire::grammar
