#include "app/model/known_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/model/known_families.h"
#include "core/model/arch/architecture.h"
#include "tests/support/source_tree.h"

namespace quire::app::known_models_test {
namespace {

std::vector<std::string> known_types() {
  std::vector<std::string> all;
  for (const KnownFamily& family : known_families()) {
    all.emplace_back(family.model_type);
    if (!family.other_type.empty()) all.emplace_back(family.other_type);
  }
  return all;
}

TEST(KnownFamilies, AreThoseOfTheRegistry) {
  const std::vector<std::string> known = known_types();
  const auto is_known = [&](std::string_view type) { return std::ranges::find(known, type) != known.end(); };
  std::vector<std::string> served;
  for (const model::Architecture& one : model::architectures()) served.emplace_back(one.model_type);
  for (const model::Wrapper& one : model::wrappers()) served.emplace_back(one.model_type);
  for (const std::string& type : served) {
    const bool is_text = type.ends_with("_text") && is_known(type.substr(0, type.size() - 5));  // of a wrapper
    EXPECT_TRUE(is_known(type) || is_text) << type << " has no row in app/model/known_models.cc";
  }
  for (const std::string& type : known) {
    EXPECT_NE(std::ranges::find(served, type), served.end()) << type << " is not served";
    EXPECT_EQ(std::ranges::count(known, type), 1) << type;
  }
}

TEST(KnownFamilies, SayWhatATokenCostsInTheCache) {
  EXPECT_EQ((KvExample{"Llama 3.1 8B", 32, 8, 128}.bytes_per_token()), 131072u);
}

TEST(KnownFamilies, AreListedForATerminal) {
  const std::string text = models_text();
  for (const std::string& type : known_types()) EXPECT_NE(text.find(type), std::string::npos) << type;
  EXPECT_NE(text.find("tool calls: llama3_json, pythonic, hermes"), std::string::npos);
  EXPECT_NE(text.find("KV cache a token, bf16: 128 KiB (Llama 3.1 8B)"), std::string::npos);
  std::size_t column = 0;
  for (const char c : text) {
    column = c == '\n' ? 0 : column + 1;
    ASSERT_LE(column, 110u) << text;
  }
}

TEST(Docs, ModelsPageHasTheGeneratedTables) {
  const std::string page = quire::test::source_text("docs/models.md");
  EXPECT_NE(page.find(models_markdown()), std::string::npos) << "paste: quire models --print-markdown";
  EXPECT_NE(page.find(formats_markdown()), std::string::npos) << "paste: quire models --print-formats-markdown";
}

}  // namespace
}  // namespace quire::app::known_models_test
