// Certificates made for a test: one that signs itself, for "localhost", as PEM files in a directory of their own.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/support/temporary_folder.h"

namespace quire::api::test {

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

inline KeyPtr make_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

// A pair of files. `from_s` and `to_s`: when it is valid, in seconds from now.
struct Certificate {
  explicit Certificate(const std::string& name, long from_s = -60, long to_s = 3600)
      : certificate_path(folder.path_of(name + ".crt")), key_path(folder.path_of(name + ".key")) {
    const KeyPtr key = make_key();
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), from_s);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), to_s);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME* subject = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(made.get(), subject);
    EXPECT_GT(X509_sign(made.get(), key.get(), EVP_sha256()), 0);
    write(certificate_path, [&](std::FILE* file) { PEM_write_X509(file, made.get()); });
    write(key_path,
          [&](std::FILE* file) { PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }

  template <typename Action>
  static void write(const std::string& path, Action action) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr) << path;
    action(file);
    std::fclose(file);
  }

  const quire::test::TemporaryFolder folder;
  std::string certificate_path;
  std::string key_path;
};

}  // namespace quire::api::test
