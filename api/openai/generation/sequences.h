// What a settled request and its prompts are for the engine: a sequence for each choice, or a search for each prompt.
// Thread  a worker; pure function.
// Fails   kInvalidArgument naming the field: a prompt that is empty, too long or not the model's, max_tokens that do
//         not fit, rules that leave nothing to say. Copies of a prompt are counted before they are made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/openai/generation/form.h"
#include "api/openai/generation/request.h"
#include "api/requests/slo_hints.h"
#include "api/services.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"
#include "core/flow/request.h"

namespace quire::api::openai {

// Where what the engine says of a prompt is put: large, and so not made on an io thread.
struct Room {
  std::unique_ptr<bridge::PromptScores> scores;        // null: it is not scored
  std::unique_ptr<bridge::PromptEmbedding> embedding;  // null: it is not pooled
};

struct Sequences {
  std::vector<flow::Request> sequences;  // of each prompt one after the other
  std::vector<Room> rooms;               // [sequences]
  std::vector<PromptRun> prompts;        // without scores
};

// What a request is given besides its body.
struct SequenceFacts {
  std::int64_t seed = 0;
  TimePoint arrival;
  std::shared_ptr<const grammar::Grammar> grammar;  // null: none
  std::string tenant{};                             // whose cached prefixes it shares; empty: the default one
  std::uint32_t tenant_id = 0;                      // the same for the fair policy
  std::uint32_t weight = 1;                         // of its share there
  requests::SloHints slo_hints{};
};

Result<Sequences> sequences_of(const GenerationRequest& request, std::vector<std::vector<TokenId>> prompts,
                               SequenceFacts facts, const Services& services);

}  // namespace quire::api::openai
