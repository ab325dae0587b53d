#include "api/http/transport/tls_context.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/api/http/transport/certificates.h"

namespace quire::api::http {
namespace {

using test::Certificate;

std::string problem_of(const std::string& certificate_path, const std::string& key_path) {
  const auto loaded = TlsContext::load(certificate_path, key_path);
  return loaded ? "none" : loaded.error().message;
}

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

void expect_said(const std::string& problem, const std::string& path, const std::string& what) {
  EXPECT_TRUE(problem.starts_with(path + ": ")) << problem;
  EXPECT_NE(problem.find(what), std::string::npos) << problem;
}

TEST(TlsContext, TakesAPairAndSaysUntilWhenItIsGood) {
  const Certificate pair("good");
  const auto loaded = TlsContext::load(pair.certificate_path, pair.key_path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE((*loaded)->expiry().ends_with("GMT")) << (*loaded)->expiry();
}

TEST(TlsContext, FindsTheKeyBehindTheCertificate) {
  const Certificate pair("together");
  std::ofstream(pair.certificate_path, std::ios::app) << text_of(pair.key_path);
  EXPECT_EQ(problem_of(pair.certificate_path, pair.certificate_path), "none");
}

TEST(TlsContext, RefusesTheKeyOfAnother) {
  const Certificate one("one");
  const Certificate other("other");
  expect_said(problem_of(one.certificate_path, other.key_path), other.key_path, one.certificate_path);
}

TEST(TlsContext, RefusesACertificateOutsideItsTime) {
  const Certificate past("past", -7200, -1);
  expect_said(problem_of(past.certificate_path, past.key_path), past.certificate_path, "expired at");
  const Certificate future("future", 3600, 7200);
  expect_said(problem_of(future.certificate_path, future.key_path), future.certificate_path, "not valid before");
}

TEST(TlsContext, NamesTheFileThatCannotBeRead) {
  const Certificate pair("readable");
  const std::string nowhere = pair.folder.path_of("no-such-file.pem");
  expect_said(problem_of(nowhere, pair.key_path), nowhere, "No such file");
  expect_said(problem_of(pair.certificate_path, nowhere), nowhere, "No such file");
}

TEST(TlsContext, NamesTheFileThatHoldsSomethingElse) {
  const Certificate pair("swapped");
  expect_said(problem_of(pair.key_path, pair.certificate_path), pair.key_path, "no certificate");
  expect_said(problem_of(pair.certificate_path, pair.certificate_path), pair.certificate_path, "no key");
  const std::string empty = pair.folder.path_of("empty.pem");
  std::ofstream(empty).flush();
  expect_said(problem_of(empty, pair.key_path), empty, "expected PEM");
}

TEST(TlsContext, AsksNobodyForAPassphrase) {
  const Certificate pair("locked");
  const test::KeyPtr key = test::make_key();
  Certificate::write(pair.key_path, [&](std::FILE* file) {
    unsigned char word[] = "open sesame";
    PEM_write_PrivateKey(file, key.get(), EVP_aes_128_cbc(), word, sizeof word - 1, nullptr, nullptr);
  });
  expect_said(problem_of(pair.certificate_path, pair.key_path), pair.key_path, "passphrase");
}

}  // namespace
}  // namespace quire::api::http
