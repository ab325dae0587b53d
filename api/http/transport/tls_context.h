// A certificate with its key, and the settings of TLS: 1.3, or 1.2 with forward secrecy and authenticated encryption.
// No renegotiation, no session cache, no early data.
// Owner   shared and immutable. A connection keeps the context that it began with, so the server may take another one
//         at any time.
// Thread  any.
// Fails   load(): kInvalidArgument whose message names the file and its fault.
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
  // Reads PEM files: the certificate, followed by its chain, and its key, without a passphrase. The key may be in the
  // certificate's file. Fails if the certificate has expired or is not valid yet.
  static Result<std::shared_ptr<const TlsContext>> load(const std::string& certificate_path,
                                                        const std::string& key_path);

  SslPtr serve(int socket) const;  // the server's side of a connection, before the handshake; does not own the socket
  const std::string& expiry() const { return expiry_; }  // "Nov 23 04:00:00 2027 GMT"

 private:
  using ContextPtr = std::unique_ptr<SSL_CTX, SslFree>;
  TlsContext(ContextPtr context, std::string expiry);

  const ContextPtr context_;
  const std::string expiry_;
};

}  // namespace quire::api::http
