// File of texts for retrieval: their tokens, and a suffix array of them.
//   file    header · tokens · places, little endian; tokens and places are 32 bits each
//   header  magic, 64-bit hash of everything after the hash, version, kSortedTokens, tokenizer key, numbers of tokens
//           and places
//   tokens  the texts one after another, kEnd after each
//   places  index of each token that is not kEnd, sorted by the kSortedTokens tokens from there on; ties by index
// A file built with another tokenizer is rejected by its tokenizer key.
// Shape   fewer than 2^32 - 1 tokens, kEnd included; 8 bytes each.
// Owner   a Datastore shares ownership of the mapping. A file is never changed in place: write() replaces it by rename.
// Thread  opened and written by one thread, at startup. find() counts probes without a lock: one thread at a time.
// Fails   open(): kNotFound if there is no such file, else the reason. It hashes the whole file before any use; reads
//         are checked against the file's sizes besides. write(): the reason; a file of that name stays as it was.
// Source  REST (He et al. 2023), 3.1: a suffix array of tokens; the file format is ours.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/model/source/mapped_file.h"

namespace quire::speculate {

class Datastore {
 public:
  static constexpr std::uint32_t kSortedTokens = 32;
  static constexpr TokenId kEnd = -1;  // of a text

  // A range of places: all texts that begin with the same tokens.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  static Result<Datastore> open(const std::string& path, std::uint64_t tokenizer_key);

  // Range of the places at which `run` stands, at most kSortedTokens tokens.
  Range find(std::span<const TokenId> run) const;
  // Token `ahead` positions after the start of the `index`-th place; kEnd too if that is outside the file.
  TokenId at(std::uint32_t index, std::uint32_t ahead) const;

  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t num_places() const { return static_cast<std::uint32_t>(places_.size()); }
  // Number of places that find() has read since open().
  std::uint64_t num_probes() const { return num_probes_; }

 private:
  // Index of the first place whose tokens are not below the run; with `above`, of the first that are above it.
  std::uint32_t bound(std::span<const TokenId> run, bool above) const;

  std::shared_ptr<const model::MappedFile> file_;
  std::span<const TokenId> tokens_;        // of file_
  std::span<const std::uint32_t> places_;  // of file_
  mutable std::uint64_t num_probes_ = 0;
};

// Builder of such a file.
// Shape   8 bytes of memory per token while it sorts.
class DatastoreBuilder {
 public:
  // False, and nothing is added, if the text no longer fits.
  bool add(std::span<const TokenId> text);
  std::uint64_t num_tokens() const { return tokens_.size(); }  // kEnd included

  // `progress` is called with the percentage of places that are sorted.
  Result<Done> write(const std::string& path, std::uint64_t tokenizer_key,
                     const std::function<void(int)>& progress = nullptr) const;

 private:
  std::vector<TokenId> tokens_;
};

}  // namespace quire::speculate
