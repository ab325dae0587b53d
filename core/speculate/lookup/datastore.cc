#include "core/speculate/lookup/datastore.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <compare>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/model/source/digest.h"

namespace quire::speculate {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'q', 'u', 'i', 'r', 'e', 'D', 'S', '\0'};
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t hash = 0;
  std::uint32_t version = kVersion;
  std::uint32_t sorted_tokens = Datastore::kSortedTokens;
  std::uint64_t tokenizer_key = 0;
  std::uint64_t num_tokens = 0;
  std::uint64_t num_places = 0;
};
constexpr std::size_t kHashedFrom = offsetof(Header, version);

Error no_good(const std::string& path, const std::string& why) {
  return {Code::kInvalidArgument, path + ": " + why, "", 0};
}

std::uint64_t hash_of(const Header& header, model::FileBytes tokens, model::FileBytes places) {
  std::uint64_t hash = model::hash_bytes(std::as_bytes(std::span(&header, 1)).subspan(kHashedFrom), 0);
  hash = model::hash_bytes(tokens, hash);
  return model::hash_bytes(places, hash);
}

// Compares the text from `place` on with a run, token by token; kEnd is below every token.
std::strong_ordering compare(std::span<const TokenId> tokens, std::uint32_t place, std::span<const TokenId> run) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    const TokenId token = place + i < tokens.size() ? tokens[place + i] : Datastore::kEnd;
    if (token != run[i]) return token <=> run[i];
    if (token == Datastore::kEnd) break;
  }
  return std::strong_ordering::equal;
}

// Sorts by first token, then each bucket by the tokens after it: most comparisons end early.
std::vector<std::uint32_t> sorted_places(std::span<const TokenId> tokens, const std::function<void(int)>& progress) {
  const TokenId highest = tokens.empty() ? Datastore::kEnd : *std::ranges::max_element(tokens);
  std::vector<std::size_t> ends(static_cast<std::size_t>(highest + 2), 0);  // end of each token's bucket, by token + 1
  for (const TokenId token : tokens) ++ends[static_cast<std::size_t>(token + 1)];
  ends[0] = 0;  // kEnd is not a place
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  std::vector<std::uint32_t> places(ends.back());
  std::vector<std::size_t> next(ends.begin(), ends.end() - 1);  // next free index in each token's bucket
  for (std::size_t place = 0; place < tokens.size(); ++place) {
    if (tokens[place] == Datastore::kEnd) continue;
    places[next[static_cast<std::size_t>(tokens[place])]++] = static_cast<std::uint32_t>(place);
  }
  const auto before = [tokens](std::uint32_t a, std::uint32_t b) {
    // Every text is followed by kEnd, where the comparison stops: no index leaves the tokens.
    for (std::uint32_t i = 1; i < Datastore::kSortedTokens; ++i) {
      if (tokens[a + i] != tokens[b + i]) return tokens[a + i] < tokens[b + i];
      if (tokens[a + i] == Datastore::kEnd) break;
    }
    return a < b;
  };
  int reported = -1;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    std::sort(places.begin() + static_cast<std::ptrdiff_t>(ends[i - 1]),
              places.begin() + static_cast<std::ptrdiff_t>(ends[i]), before);
    const int percent = static_cast<int>(ends[i] * 100 / std::max<std::size_t>(places.size(), 1));
    if (progress && percent != reported) progress(reported = percent);
  }
  return places;
}

}  // namespace

Result<Datastore> Datastore::open(const std::string& path, std::uint64_t tokenizer_key) {
  Result<std::unique_ptr<model::MappedFile>> mapped = model::MappedFile::open(path);
  if (!mapped) return mapped.error();
  Datastore store;
  store.file_ = *std::move(mapped);
  const model::FileBytes bytes = store.file_->bytes();
  Header header;
  if (bytes.size() < sizeof(header)) return no_good(path, "it is truncated");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return no_good(path, "it is not a datastore");
  if (header.version != kVersion || header.sorted_tokens != kSortedTokens) {
    return no_good(path, "it has another version: build it again with this program");
  }
  const model::FileBytes content = bytes.subspan(sizeof(header));
  const std::size_t numbers = content.size() / sizeof(std::uint32_t);
  if (content.size() % sizeof(std::uint32_t) != 0 || header.num_tokens > numbers ||
      header.num_places != numbers - header.num_tokens || header.num_places > header.num_tokens ||
      header.num_tokens >= ~std::uint32_t{0}) {
    return no_good(path, "its length differs from its header");
  }
  const model::FileBytes tokens = content.first(header.num_tokens * sizeof(TokenId));
  const model::FileBytes places = content.subspan(tokens.size());
  if (hash_of(header, tokens, places) != header.hash) return no_good(path, "it is damaged");
  if (header.tokenizer_key != tokenizer_key) return no_good(path, "it was built with another tokenizer");
  store.tokens_ = {reinterpret_cast<const TokenId*>(tokens.data()), header.num_tokens};
  store.places_ = {reinterpret_cast<const std::uint32_t*>(places.data()), header.num_places};
  return store;
}

Datastore::Range Datastore::find(std::span<const TokenId> run) const {
  const std::uint32_t first = bound(run, false);
  const std::uint32_t last = bound(run, true);
  return {first, last > first ? last - first : 0};
}

TokenId Datastore::at(std::uint32_t index, std::uint32_t ahead) const {
  if (index >= places_.size()) return kEnd;
  const std::uint64_t place = std::uint64_t{places_[index]} + ahead;
  return place < tokens_.size() ? tokens_[place] : kEnd;
}

std::uint32_t Datastore::bound(std::span<const TokenId> run, bool above) const {
  std::uint32_t low = 0;
  std::uint32_t high = num_places();
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::strong_ordering order = compare(tokens_, places_[middle], run);
    ++num_probes_;
    (order < 0 || (above && order == 0) ? low = middle + 1 : high = middle);
  }
  return low;
}

bool DatastoreBuilder::add(std::span<const TokenId> text) {
  if (tokens_.size() + text.size() + 1 >= ~std::uint32_t{0}) return false;
  if (text.empty()) return true;
  for (const TokenId token : text) CHECK_GE(token, 0);
  tokens_.insert(tokens_.end(), text.begin(), text.end());
  tokens_.push_back(Datastore::kEnd);
  return true;
}

Result<Done> DatastoreBuilder::write(const std::string& path, std::uint64_t tokenizer_key,
                                     const std::function<void(int)>& progress) const {
  const std::vector<std::uint32_t> places = sorted_places(tokens_, progress);
  Header header;
  header.tokenizer_key = tokenizer_key;
  header.num_tokens = tokens_.size();
  header.num_places = places.size();
  const auto token_bytes = std::as_bytes(std::span(tokens_));
  const auto place_bytes = std::as_bytes(std::span(places));
  header.hash = hash_of(header, token_bytes, place_bytes);

  const std::string part = path + ".part";
  const auto failed = [&part](const char* what) {
    return Error{Code::kInternal, std::string(what) + part + ": " + model::system_error_text(errno), "", 0};
  };
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return failed("cannot make ");
  bool written = true;
  for (const auto bytes : {std::as_bytes(std::span(&header, 1)), token_bytes, place_bytes}) {
    if (bytes.empty()) continue;
    written = written && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  }
  written = std::fflush(file) == 0 && written && ::fsync(::fileno(file)) == 0;
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(part.c_str(), path.c_str()) == 0) return Done{};
  const Error error = failed("cannot write ");
  std::remove(part.c_str());
  return error;
}

}  // namespace quire::speculate
