#include "app/kv_events/event_payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "app/kv_events/msgpack.h"

namespace quire::app {
namespace {

using flow::CacheChange;
using Kind = CacheChange::Kind;

// The number of leading changes that form one event.
std::size_t length_of_event(std::span<const CacheChange> changes) {
  const Kind kind = changes.front().kind;
  std::size_t length = 1;
  for (; length < changes.size() && changes[length].kind == kind; ++length) {
    if (kind == Kind::kCleared) break;
    if (kind == Kind::kStored && changes[length].parent != changes[length - 1].entry) break;
  }
  return length;
}

std::size_t num_events(std::span<const CacheChange> changes) {
  std::size_t num = 0;
  for (; !changes.empty(); changes = changes.subspan(length_of_event(changes))) ++num;
  return num;
}

// Writes events, with fields by name (maps) or by position (arrays).
class EventWriter {
 public:
  EventWriter(std::string& out, const PayloadFacts& facts) : pack_(out), facts_(facts) {}

  void stored(std::span<const CacheChange> changes, std::span<const TokenId> tokens) {
    const CacheChange& first = changes.front();
    const bool has_namespace = first.parent == 0 && first.cache_namespace != facts_.plain_namespace;
    begin("BlockStored", has_namespace ? 8 : 7);
    hashes(changes);
    name("parent_block_hash");
    if (first.parent == 0) {
      pack_.nil();
    } else {
      pack_.number(block_hash(first.parent, facts_.hash_key));
    }
    name("token_ids");
    pack_.array(tokens.size());
    for (const TokenId token : tokens) pack_.number(static_cast<std::uint64_t>(token));
    name("block_size");
    pack_.number(facts_.block_tokens);
    name("lora_id");
    pack_.nil();
    medium();
    name("lora_name");
    pack_.nil();
    if (has_namespace) extra_keys(first.cache_namespace, changes.size());
  }

  void removed(std::span<const CacheChange> changes) {
    begin("BlockRemoved", 2);
    hashes(changes);
    medium();
  }

  void cleared() { begin("AllBlocksCleared", 0); }

 private:
  void begin(std::string_view type, std::size_t num_fields) {
    if (maps()) {
      pack_.map(num_fields + 1).text("type").text(type);
    } else {
      pack_.array(num_fields + 1).text(type);
    }
  }
  void name(std::string_view name) {
    if (maps()) pack_.text(name);
  }
  void hashes(std::span<const CacheChange> changes) {
    name("block_hashes");
    pack_.array(changes.size());
    for (const CacheChange& change : changes) pack_.number(block_hash(change.entry, facts_.hash_key));
  }
  void medium() {
    name("medium");
    pack_.text(facts_.medium);
  }
  // Key of the first block; the others are its descendants and need none.
  void extra_keys(CacheNamespace cache_namespace, std::size_t num_blocks) {
    name("extra_keys");
    pack_.array(num_blocks).array(1).text(fmt::format("{:016x}{:016x}", cache_namespace.high, cache_namespace.low));
    for (std::size_t i = 1; i < num_blocks; ++i) pack_.nil();
  }
  bool maps() const { return facts_.format == KvEventsConfig::Format::kMap; }

  MsgpackWriter pack_;
  const PayloadFacts& facts_;
};

}  // namespace

std::string medium_of(std::string_view numeric_mode) {
  return numeric_mode.find(" backend=cpu ") != numeric_mode.npos ? "CPU" : "GPU";
}

std::string event_payload(const flow::CacheChanges& changes, double unix_seconds, const PayloadFacts& facts) {
  std::string out;
  MsgpackWriter pack(out);
  pack.array(3).real(unix_seconds).array(num_events(changes.changes));
  EventWriter event(out, facts);
  std::span<const TokenId> tokens = changes.tokens;
  for (std::span<const CacheChange> rest = changes.changes; !rest.empty();) {
    const auto one = rest.first(length_of_event(rest));
    rest = rest.subspan(one.size());
    if (one.front().kind == Kind::kStored) {
      const std::size_t num_tokens = one.size() * facts.block_tokens;
      event.stored(one, tokens.first(num_tokens));
      tokens = tokens.subspan(num_tokens);
    } else if (one.front().kind == Kind::kRemoved) {
      event.removed(one);
    } else {
      event.cleared();
    }
  }
  pack.number(0);  // data-parallel rank: there is only one
  return out;
}

// The finaliser of MurmurHash3 (Appleby, public domain): a bijection that maps only 0 to 0. Entry ids count up from 1
// and never reach 2^63, while the key has its top bit set; so `value` is never 0 before it.
std::uint64_t block_hash(std::uint64_t entry, std::uint64_t hash_key) {
  std::uint64_t value = entry ^ (hash_key | std::uint64_t{1} << 63);
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

}  // namespace quire::app
