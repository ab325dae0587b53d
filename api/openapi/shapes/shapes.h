// Shapes of the answers of each group of paths, their events included, and of the objects in request bodies.
// Shape   they follow the functions that write the answers; tests/wire/test_openapi.py compares them with answers of a
//         server, where no member may be missing in either.
// Source  OpenAI's and Anthropic's API references, vLLM's and llama.cpp's additions.
// Thread  any; constants.
#pragma once

#include <span>
#include <string_view>

#include "api/openapi/shapes/shape.h"

namespace quire::api {

std::span<const Shape> completion_shapes();
std::span<const Shape> chat_shapes();
std::span<const Shape> response_shapes();
std::span<const Shape> message_shapes();
std::span<const Shape> tokenizer_shapes();
std::span<const Shape> server_shapes();
std::span<const Shape> conversation_shapes();

// The members that OpenAI-shaped answers have in common.
// clang-format off
inline constexpr Member kHeadMembers[] = {
    {"id", "string", "id of the answer: the request's, after a prefix", R"("chatcmpl-4b1c8f0e27d94a6b")"},
    {"created", "integer", "when the request arrived, in Unix seconds", "1767225600"},
    {"model", "string", "the served name that the request gave, or the first one", R"("stories")"},
    {"system_fingerprint", "string", "the numeric mode: equal requests with equal seeds get equal answers from it", R"("fp_5f1d0c3a")"},
    {"seed", "integer", "the request's seed, or the random one that was used", "7"},
};
// clang-format on

}  // namespace quire::api
