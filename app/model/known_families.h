// The families of models that quire serves.
//   family · known models by name · differences from Llama · tool calls and reasoning · KV bytes a token
// Shape   a row for each architecture and wrapper of the registry, in docs/models.md's order. Formats are those of the
//         templates that the models are published with; another template may teach others (--tool-call-parser).
// Owner   constants.
// Thread  any.
// Source  the models' published config.json and chat templates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/answer/calls/call_format.h"
#include "api/answer/reasoning_format.h"

namespace quire::app {

// A published model, and the sizes that decide about its KV cache.
struct KvExample {
  std::string_view model;
  std::uint32_t layers = 0;  // that have K and V of their own
  std::uint32_t kv_heads = 0;
  std::uint32_t head_size = 0;
  bool latent = false;  // K and V are one row
  // In bf16.
  std::uint64_t bytes_per_token() const { return (latent ? 2ull : 4ull) * layers * kv_heads * head_size; }
};

struct KnownFamily {
  std::string_view model_type;
  std::string_view other_type{};  // with the same row
  std::string_view models;        // on the hub, for example
  std::string_view differs;       // from Llama in this; empty: nothing
  // kNone in a format's place: no further one; in the first place: none of these models is tuned for conversations.
  // kGeneric: the server describes tools in the prompt.
  std::array<api::chat::CallFormat, 3> calls{};
  api::chat::ReasoningFormat reasoning = api::chat::ReasoningFormat::kNone;  // of those that reason
  KvExample kv{};
};

std::span<const KnownFamily> known_families();

}  // namespace quire::app
