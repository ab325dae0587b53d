// The hash that a blob is named by: SHA-256 of its bytes, or, for a file that Git itself holds, the SHA-1 of Git's
// blob.
// Thread  one at a time.
// Source  FIPS 180-4; "blob <size>\0" and the bytes, as `git hash-object` has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace quire::hub {

class BlobDigest {
 public:
  // `name`: as is_blob(); its length says which hash. `size`: of the whole blob.
  BlobDigest(const std::string& name, std::uint64_t size);
  ~BlobDigest();
  BlobDigest(const BlobDigest&) = delete;
  BlobDigest& operator=(const BlobDigest&) = delete;

  void restart();
  void add(std::span<const std::byte> bytes);
  bool matches();  // call once, after the last byte; restart() begins again

 private:
  const std::string name_;
  const std::uint64_t size_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quire::hub
