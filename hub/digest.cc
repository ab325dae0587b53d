#include "hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "core/base/check.h"

namespace quire::hub {

struct BlobDigest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

BlobDigest::BlobDigest(const std::string& name, std::uint64_t size)
    : name_(name), size_(size), state_(std::make_unique<State>()) {
  restart();
}

BlobDigest::~BlobDigest() = default;

void BlobDigest::restart() {
  const bool is_git_s = name_.size() == 40;
  CHECK(EVP_DigestInit_ex(state_->context, is_git_s ? EVP_sha1() : EVP_sha256(), nullptr) == 1);
  if (!is_git_s) return;
  const std::string head = fmt::format("blob {}", size_);
  CHECK(EVP_DigestUpdate(state_->context, head.c_str(), head.size() + 1) == 1);
}

void BlobDigest::add(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

bool BlobDigest::matches() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context, hash, &length) == 1);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", hash[i]);
  return text == name_;
}

}  // namespace quire::hub
