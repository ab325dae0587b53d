#include "hub/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "tests/support/temporary_folder.h"

namespace quire::hub {
namespace {

using ::testing::HasSubstr;

Settings settings(std::vector<std::string> variables, const std::string& cache = "", bool allows_http = false) {
  std::vector<const char*> pointers;
  for (const std::string& one : variables) pointers.push_back(one.c_str());
  pointers.push_back(nullptr);
  return read_settings(pointers.data(), cache, allows_http);
}

std::string refusal(const std::vector<std::string>& variables) {
  try {
    settings(variables);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(HubSettings, FindTheCacheWhereHuggingFacesProgramsDo) {
  EXPECT_EQ(settings({"HOME=/h/a"}).cache, "/h/a/.cache/huggingface/hub");
  EXPECT_EQ(settings({"HOME=/h/a", "XDG_CACHE_HOME=/x"}).cache, "/x/huggingface/hub");
  EXPECT_EQ(settings({"HOME=/h/a", "XDG_CACHE_HOME=/x", "HF_HOME=~/hf"}).cache, "/h/a/hf/hub");
  EXPECT_EQ(settings({"HF_HOME=/hf", "HF_HUB_CACHE=/c"}).cache, "/c");
  EXPECT_EQ(settings({"HF_HOME=/hf", "HUGGINGFACE_HUB_CACHE=/old"}).cache, "/old");
  EXPECT_EQ(settings({"HF_HUB_CACHE=/c"}, "/given").cache, "/given");
  EXPECT_EQ(settings({"HF_HUB_CACHE=", "HF_HOME=/hf"}).cache, "/hf/hub");
  EXPECT_THAT(settings({}).cache.string(), ::testing::EndsWith("/.cache/huggingface/hub"));  // of the user's directory
  EXPECT_TRUE(settings({}).cache.is_absolute());
}

TEST(HubSettings, TakeTheTokenFromTheVariableElseFromItsFile) {
  const test::TemporaryFolder folder;
  folder.write("token", " hf_file \n");
  const std::string home = "HF_HOME=" + folder.path();
  EXPECT_EQ(settings({home}).token, "hf_file");
  EXPECT_EQ(settings({home}).token_source, folder.path_of("token"));
  EXPECT_EQ(settings({home, "HF_TOKEN=hf_x"}).token, "hf_x");
  EXPECT_EQ(settings({home, "HF_TOKEN=hf_x"}).token_source, "HF_TOKEN");
  EXPECT_EQ(settings({home, "HUGGING_FACE_HUB_TOKEN=hf_old"}).token, "hf_old");
  EXPECT_EQ(settings({"HF_TOKEN_PATH=" + folder.path_of("token"), "HF_HOME=/none"}).token, "hf_file");
  EXPECT_EQ(settings({home, "HF_HUB_DISABLE_IMPLICIT_TOKEN=1"}).token, "");
  EXPECT_EQ(settings({"HF_HOME=/none"}).token, "");
  EXPECT_THAT(refusal({"HF_TOKEN=two words"}), HasSubstr("HF_TOKEN holds no token"));
  EXPECT_THAT(refusal({"HF_TOKEN=a\r\nHost: b"}), HasSubstr("HF_TOKEN holds no token"));
}

TEST(HubSettings, AreOfflineWhereAVariableSaysSo) {
  for (const char* yes : {"1", "true", "TRUE", "yes", "On"}) {
    EXPECT_TRUE(settings({std::string("HF_HUB_OFFLINE=") + yes}).offline) << yes;
  }
  EXPECT_TRUE(settings({"TRANSFORMERS_OFFLINE=1"}).offline);
  EXPECT_FALSE(settings({"HF_HUB_OFFLINE=0"}).offline);
  EXPECT_FALSE(settings({}).offline);
}

TEST(HubSettings, TakeAnEndpointOverHttpsOrOnThisMachine) {
  EXPECT_EQ(settings({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(settings({"HF_ENDPOINT=https://hub.example/base//"}).endpoint, "https://hub.example/base");
  for (const char* url : {"http://localhost:80", "http://127.0.0.1", "http://127.1.2.3:8", "http://[::1]:80"}) {
    EXPECT_EQ(settings({std::string("HF_ENDPOINT=") + url}).endpoint, url);
  }
  EXPECT_THAT(refusal({"HF_ENDPOINT=http://hub.example"}), HasSubstr("--allow-http-hub"));
  EXPECT_THAT(refusal({"HF_ENDPOINT=http://127.0.0.1.example"}), HasSubstr("--allow-http-hub"));
  EXPECT_EQ(settings({"HF_ENDPOINT=http://hub.example"}, "", true).endpoint, "http://hub.example");
  for (const char* url :
       {"hub.example", "ftp://a", "https://", "https://u:p@h", "https://a:0", "https://a:65536", "https://a?b"}) {
    EXPECT_THAT(refusal({std::string("HF_ENDPOINT=") + url}), HasSubstr("expected a URL")) << url;
  }
  EXPECT_THAT(refusal({"HF_ENDPOINT=https://user:secret@hub"}), ::testing::Not(HasSubstr("secret")));
}

TEST(Origin, ComparesSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Hub.Example/a?b#c"), (Origin{"https", "hub.example", 443}));
  EXPECT_EQ(origin_of("HTTP://a"), (Origin{"http", "a", 80}));
  EXPECT_EQ(origin_of("https://a:8443/x"), (Origin{"https", "a", 8443}));
  EXPECT_EQ(origin_of("https://[::1]:1/x"), (Origin{"https", "[::1]", 1}));
  EXPECT_EQ(origin_of("https://hub.example\\@evil.example/"), (Origin{"https", "hub.example", 443}));
  EXPECT_EQ(origin_of("https://hub.example@evil.example/").scheme, "");
  EXPECT_EQ(origin_of("//a/b").scheme, "");
}

}  // namespace
}  // namespace quire::hub
