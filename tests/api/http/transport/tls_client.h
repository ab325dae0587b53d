// RawClient's twin under TLS: sends exactly the bytes it is told to, in the records it is told to.
// Fails   every wait ends after 20 s. Certificates are not checked: who serves is not what these tests are about.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/api/http/raw_client.h"

namespace quire::api::test {

class TlsClient {
 public:
  struct SloHints {
    int min_version = TLS1_2_VERSION;
    int max_version = TLS1_3_VERSION;
    const char* ciphers = "DEFAULT:@SECLEVEL=0";  // of 1.2 and before
  };

  explicit TlsClient(std::uint16_t port) : TlsClient(port, SloHints{}) {}
  TlsClient(std::uint16_t port, const SloHints& slo_hints) : raw_(port) {
    const timeval patience{20, 0};
    ::setsockopt(raw_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    context_.reset(SSL_CTX_new(TLS_client_method()));
    EXPECT_EQ(SSL_CTX_set_cipher_list(context_.get(), slo_hints.ciphers), 1);
    SSL_CTX_set_min_proto_version(context_.get(), slo_hints.min_version);
    SSL_CTX_set_max_proto_version(context_.get(), slo_hints.max_version);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), raw_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }

  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  std::string subject() const {
    const std::unique_ptr<X509, decltype(&X509_free)> peer(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    char name[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer.get()), NID_commonName, name, sizeof name);
    return name;
  }
  RawClient& raw() { return raw_; }

  // One record for up to 16 KiB.
  bool send(std::string_view bytes) {
    std::size_t sent = 0;
    return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent) == 1 && sent == bytes.size();
  }
  void send_end() { SSL_shutdown(ssl_.get()); }

  bool read_some() {
    char bytes[65536];
    std::size_t got = 0;
    if (SSL_read_ex(ssl_.get(), bytes, sizeof bytes, &got) != 1) return false;
    buffer_.append(bytes, got);
    return true;
  }
  // Whether the server said that it would say no more, rather than just going.
  bool knows_of_the_end() { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }

  std::string read_until(std::string_view text) {
    std::size_t at;
    while ((at = buffer_.find(text)) == std::string::npos) {
      if (!read_some()) {
        ADD_FAILURE() << "'" << text << "' did not come; there is: " << buffer_;
        return {};
      }
    }
    std::string out = buffer_.substr(0, at + text.size());
    buffer_.erase(0, out.size());
    return out;
  }
  std::string read_to_the_end() {
    while (read_some()) {
    }
    return std::exchange(buffer_, {});
  }
  // An answer with a Content-Length, whole: its head and its body.
  std::string read_answer() {
    std::string answer = read_until("\r\n\r\n");
    const std::size_t at = answer.find("Content-Length: ");
    if (at == std::string::npos) return answer;
    const std::size_t length = std::stoul(answer.substr(at + 16));
    while (buffer_.size() < length && read_some()) {
    }
    answer += buffer_.substr(0, length);
    buffer_.erase(0, length);
    return answer;
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  RawClient raw_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool connected_ = false;
  std::string buffer_;
};

}  // namespace quire::api::test
