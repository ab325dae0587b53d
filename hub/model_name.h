// Names of models on a hub, and which names, revisions and paths may reach the file system or a URL.
// Shape   ORG/NAME, ORG/NAME@REVISION, ORG/NAME:QUANT, or both in either order.
// Thread  any.
// Fails   parse_model_name(): kInvalidArgument with what was expected.
// Source  names of repositories as the Hugging Face hub has them; gitrevisions(7) for revisions.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace quire::hub {

inline constexpr std::string_view kMainRevision = "main";

struct ModelName {
  std::string repo;                     // "Qwen/Qwen3-0.6B"
  std::string revision{kMainRevision};  // branch, tag or commit
  std::string quant{};                  // of a repository of GGUF files: "Q4_K_M"; empty: its safetensors

  std::string text() const;  // as typed, without the revision if that is main
  bool operator==(const ModelName&) const = default;
};

Result<ModelName> parse_model_name(std::string_view text);

// True if the text has the form of a model's name and no path was meant: it begins with neither '.', '/' nor '~'.
bool looks_like_model_name(std::string_view text);

bool is_repo(std::string_view text);      // "ORG/NAME", at most 96 characters
bool is_revision(std::string_view text);  // at most 255 characters
bool is_commit(std::string_view text);    // 40 hexadecimal digits
bool is_blob(std::string_view text);      // a SHA-256 or SHA-1 in lower-case hexadecimal digits

// True for a relative path that stays below its directory: components without "..", backslashes and control
// characters.
bool is_safe_path(std::string_view path);

}  // namespace quire::hub
