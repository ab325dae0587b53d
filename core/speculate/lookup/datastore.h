// Texts to be retrieved from, in a file: their tokens, and every place in them in the order of what is said from there on.
//   file    header · tokens · places.  Numbers are little endian, 32 bits wide.
//   header  magic, hash of all that follows it in the file, version, sizes, whose tokens they are
//   tokens  the texts one behind the other, an end after each
//   places  of each token that is no end, sorted by its next kSortedTokens tokens; those that are equal in these by place
// The key stands for the tokenizer: with another one's tokens a store is of no use, and is refused.
// Shape   fewer than 2^32 - 1 tokens, ends included; 8 bytes each.
// Owner   whoever holds a Datastore keeps the mapping. A file is never changed, another one takes its name.
// Thread  opened and written by one, while starting; may be read by any.
// Fails   open(): kNotFound where there is no such file, else the reason why it is not good: nothing is used before the hash of the
//         whole file was right, and what a file says is checked against its sizes at each use even so. write(): the reason, and what
//         was there before stays.
// Source  REST (He et al. 2023), 3.1: a suffix array of tokens; the file is ours.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/model/mapped_file.h"

namespace quire::speculate {

class Datastore {
 public:
  static constexpr std::uint32_t kSortedTokens = 32;
  static constexpr TokenId kEnd = -1;  // of a text

  // Some of places(): all that begin with the same tokens.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  static Result<Datastore> open(const std::string& path, std::uint64_t tokenizer_key);

  // Where the tokens stand, kSortedTokens at most.
  Range find(std::span<const TokenId> run) const;
  // The token so many behind the `index`-th place; kEnd also for what is not in the file.
  TokenId at(std::uint32_t index, std::uint32_t ahead) const;

  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_places() const { return static_cast<std::uint32_t>(places_.size()); }
  // Places looked at by find() since it was opened.
  std::uint64_t num_probes() const { return num_probes_; }

 private:
  // Of all places the first whose tokens are not below the run, or `above`: the first that are above it.
  std::uint32_t bound(std::span<const TokenId> run, bool above) const;

  std::shared_ptr<const model::MappedFile> file_;
  std::span<const TokenId> tokens_;        // of file_
  std::span<const std::uint32_t> places_;  // of file_
  mutable std::uint64_t num_probes_ = 0;
};

// Gathers texts, and writes them as such a file.
// Shape   8 bytes of memory a token while it sorts.
class DatastoreBuilder {
 public:
  // False, and nothing is added, where they would no longer fit.
  bool add(std::span<const TokenId> text);
  std::uint64_t num_tokens() const { return tokens_.size(); }  // ends included

  // `progress` hears which part of the places, in percent, is sorted.
  Result<Done> write(const std::string& path, std::uint64_t tokenizer_key,
                     const std::function<void(int)>& progress = nullptr) const;

 private:
  std::vector<TokenId> tokens_;
};

}  // namespace quire::speculate
