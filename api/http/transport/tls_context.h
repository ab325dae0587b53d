// A certificate with its key, and what we speak with them: TLS 1.3, or 1.2 with forward secrecy and ciphers that
// authenticate. Nothing is renegotiated, resumed from memory or sent before the handshake is over.
// Owner   shared and immutable. A connection holds the one it began with, so that another may be taken at any time.
// Thread  any.
// Fails   load(): kInvalidArgument, whose message names the file and says what is wrong with it.
// Source  RFC 8446; RFC 9325, sections 3 and 4.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "core/base/result.h"

namespace quire::api::http {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;

class TlsContext {
 public:
  // PEM files: the certificate with those that signed it behind it, and its key, without a passphrase. The key may lie in
  // the certificate's file. Now must be within the certificate's time.
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& certificate_path,
                                                        const std::string& key_path);

  SslPtr serve(int socket) const;  // our end of a connection that is to be accepted; the socket stays the caller's
  const std::string& expiry() const { return expiry_; }  // "Nov 23 04:00:00 2027 GMT"

 private:
  using ContextPtr = std::unique_ptr<SSL_CTX, SslFree>;
  TlsContext(ContextPtr context, std::string expiry);

  const ContextPtr context_;
  const std::string expiry_;
};

}  // namespace quire::api::http
