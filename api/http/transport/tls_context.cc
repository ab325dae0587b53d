#include "api/http/transport/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstring>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace quire::api::http {
namespace {

// Ciphers of TLS 1.2. All ciphers of TLS 1.3 are of this kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

Error wrong(const std::string& path, const std::string& what) { return invalid("", path + ": " + what); }

// Reason of the last call's failure: its first error.
std::string reason() {
  const unsigned long code = ERR_peek_error();
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  if (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE) {
    return "expected PEM, found no PEM block";
  }
  const char* text = ERR_reason_error_string(code);
  return text != nullptr ? text : "cannot be read";
}

bool is_mismatch() {
  const unsigned long code = ERR_peek_last_error();
  const int why = ERR_GET_REASON(code);
  return ERR_GET_LIB(code) == ERR_LIB_X509 && (why == X509_R_KEY_VALUES_MISMATCH || why == X509_R_KEY_TYPE_MISMATCH);
}

// Refuses to ask for a passphrase, since a server has nobody to ask; `asked` is set for the error text.
int refuse_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

void set_manners(SSL_CTX* context) {
  CHECK_EQ(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION), 1);
  CHECK_EQ(SSL_CTX_set_cipher_list(context, kCiphers), 1);
  // HTTP itself marks the end of a message, so a client that closes without close_notify has just closed.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A partial write may be continued from another address; an idle connection holds no buffers.
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}

std::string text_of(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(out.get(), time);
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(bytes)};
}

std::optional<Error> check_time(const std::string& path, const X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return wrong(path, "the certificate expired at " + text_of(X509_get0_notAfter(certificate)));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return wrong(path, "the certificate is not valid before " + text_of(X509_get0_notBefore(certificate)));
  }
  return std::nullopt;
}

}  // namespace

TlsContext::TlsContext(ContextPtr context, std::string expiry)
    : context_(std::move(context)), expiry_(std::move(expiry)) {}

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const std::string& certificate_path,
                                                           const std::string& key_path) {
  ContextPtr context(SSL_CTX_new(TLS_server_method()));
  CHECK(context != nullptr);
  set_manners(context.get());
  bool passphrase_asked = false;
  SSL_CTX_set_default_passwd_cb(context.get(), refuse_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), &passphrase_asked);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_path.c_str()) != 1) {
    return wrong(certificate_path, "no certificate can be read: " + reason());
  }
  ERR_clear_error();
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_path.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (passphrase_asked) return wrong(key_path, "the key has a passphrase; store it without one");
    if (is_mismatch()) return wrong(key_path, "this is not the key of the certificate in " + certificate_path);
    return wrong(key_path, "no key can be read: " + reason());
  }
  SSL_CTX_set_default_passwd_cb_userdata(context.get(), nullptr);
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  if (std::optional<Error> late = check_time(certificate_path, certificate)) return *std::move(late);
  std::string expiry = text_of(X509_get0_notAfter(certificate));
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context), std::move(expiry)));
}

SslPtr TlsContext::serve(int socket) const {
  SslPtr ssl(SSL_new(context_.get()));
  CHECK(ssl != nullptr);
  CHECK_EQ(SSL_set_fd(ssl.get(), socket), 1);
  return ssl;
}

}  // namespace quire::api::http
