// Settings of the hub and of its cache on disk, from the environment variables that Hugging Face's programs read.
// Shape   the root of the cache: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub.
//         The token: HF_TOKEN, or the file HF_TOKEN_PATH, HF_HOME/token.
// Thread  any.
// Fails   StartError: an endpoint that is no URL, or plain HTTP to another machine; a token with characters that no
//         header may have.
// Source  the environment variables of huggingface_hub.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "core/base/clock.h"

namespace quire::hub {

struct Settings {
  std::string endpoint = "https://huggingface.co";  // without a trailing slash
  std::filesystem::path cache;                      // the directory that has models--ORG--NAME
  std::string token{};                              // secret; empty: none
  std::string token_source{};                       // "HF_TOKEN" or the token's file, for messages
  std::string ca_file{};                            // PEM; empty: the system's certificates
  bool offline = false;
  bool allows_http = false;                        // plain HTTP to machines other than this one
  Duration silence = std::chrono::seconds(30);     // for a connection, and then between two pieces of an answer
  Duration first_delay = std::chrono::seconds(1);  // before the first repetition; doubled for each next one
  Duration longest_delay = std::chrono::seconds(30);
  int max_attempts = 6;      // in a row without any new byte
  unsigned num_workers = 8;  // files at a time
};

// `environment`: "NAME=value", up to a null. `cache`: --download-dir; empty: the environment decides.
Settings read_settings(const char* const* environment, const std::string& cache, bool allows_http);

// Parts of an absolute URL.
struct Origin {
  std::string scheme;  // "https" or "http"
  std::string host;    // lower case; an IPv6 address in brackets
  unsigned port = 0;

  bool is_loopback() const;
  std::string text() const;
  bool operator==(const Origin&) const = default;
};

// Empty scheme: the URL is no absolute one of http or https, or names a user.
Origin origin_of(const std::string& url);

}  // namespace quire::hub
