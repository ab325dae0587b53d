// What app/ hands to api/ once, at start: the doors into the engine, and the facts every answer is made from. Plain
// data.
// Owner   app; whatever is referred to outlives the Server.
// Thread  read by every io thread and worker; never written after start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/budgets.h"
#include "api/chat/chat_model.h"
#include "api/keys/key_table.h"
#include "api/openai/generation/grammars.h"
#include "api/tracing/tracer.h"
#include "api/workers.h"
#include "core/base/ids.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/bridge/latest.h"
#include "core/bridge/request_book.h"
#include "core/observe/metrics.h"
#include "core/sample/params.h"
#include "core/text/tokenizer.h"

namespace quire::api {

// What one request may ask for. Every one of them is answered 400 naming the field at limit + 1.
struct RequestLimits {
  std::uint32_t max_prompts = 128;      // prompts in a list
  std::uint32_t max_inputs = 2048;      // inputs of one request for embeddings, as OpenAI has it
  std::uint32_t max_stop_strings = 16;  // strings in `stop`
  std::uint32_t max_stop_bytes = 512;   // bytes of all of them together
  std::uint32_t max_user_bytes = 256;   // bytes of `user`
  std::uint32_t max_choices = 128;      // prompts times best_of; so `n` and `best_of` are at most that, too
  std::uint32_t max_salt_bytes = 128;   // bytes of `cache_salt`
  std::uint32_t max_request_id_bytes = 128;
  std::uint32_t max_label_bytes = 128;  // bytes of a header that is only told apart, or logged
  std::uint32_t max_logprobs = 20;      // likeliest tokens told beside a token
  std::uint32_t max_logit_bias = 1024;  // tokens in `logit_bias`
  std::uint32_t max_stop_token_ids = 128;
  std::uint32_t max_bad_words = 128;                // strings in `bad_words`
  std::uint32_t max_bad_word_bytes = 4096;          // bytes of all of them together
  std::uint32_t max_grammar_bytes = 65536;          // bytes of a schema, an expression, a grammar
  std::uint32_t max_tokenized_bytes = 1u << 20;     // bytes of a text for /tokenize
  std::uint32_t max_detokenized_tokens = 1u << 18;  // ids for /detokenize
  std::uint32_t max_messages = 4096;                // messages of a conversation
  std::uint32_t max_content_parts = 1024;           // text parts of a message
  std::uint32_t max_tool_calls = 128;               // calls in a message
  std::uint32_t max_tools = 128;                    // functions in `tools`
};

struct Services {
  bridge::AdmissionQueue& queue;
  Workers& workers;            // parsing, tokenising, grammars
  Budgets& budgets;            // of memory, for bodies and answers
  bridge::Doorbell& doorbell;  // the engine's, for the streams
  const bridge::EngineStatus& engine;
  bridge::ControlQueue& control;  // save and load the prefix cache
  bridge::RequestBook& requests;  // that run, and the last ones that ran
  observe::Metrics& metrics;

  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::vector<std::string>
      model_names;           // the served names, at least one; the first stands in answers to requests without one
  std::int64_t created = 0;  // unix seconds: when the server started
  std::uint32_t max_model_len = 0;  // tokens of prompt and answer together
  std::uint32_t logits_width = 0;   // token ids are in [0, logits_width)
  std::uint32_t hidden_size = 0;    // numbers of an embedding
  std::uint32_t max_num_seqs = 64;  // sequences that run at the same time: no beam search is wider
  bool first_come = true;           // who waits goes by arrival: what is in the line is before whoever comes
  std::uint32_t model_window = 0;   // the widest of its sliding windows, in positions; 0: it has none
  bool prefix_caching = true;       // what was computed is kept for whoever begins alike
  // Names of what tokens are guessed by, the first one unless a request says another; empty: by nothing.
  std::vector<std::string> speculative_methods{};
  sample::Accept accept = sample::Accept::kMatch;  // how guesses are taken, unless a request says another
  bool adaptive_drafts = false;                    // drafts are as large as pays: then there is match alone
  std::vector<TokenId> eos;                        // these end an answer, unless ignore_eos
  std::optional<TokenId> bos;                      // what an empty prompt becomes; without one "" is answered 400
  sample::Params defaults;                         // from generation_config.json; seed and choice_index are not read
  float repetition_penalty = 1.0f;                 // likewise, where a request says nothing
  std::optional<std::uint32_t> max_new_tokens{};   // likewise; empty: what room is left
  std::string fingerprint;                         // system_fingerprint
  std::string version;
  RequestLimits limits;
  // Null: whatever asks for a grammar is answered 400.
  std::shared_ptr<openai::Grammars> grammars{};
  std::string cache_dir;                             // where saved caches lie; empty: they are neither saved nor loaded
  std::shared_ptr<const chat::ChatModel> chat = {};  // null: as without a chat template
  std::string tokenizer_info = {};                   // JSON that /tokenizer_info answers; empty: not told
  const bridge::Latest<keys::KeyTable>* keys = nullptr;  // null: nobody needs one
  const tracing::Tracer* tracer = nullptr;               // null: nothing is traced
};

}  // namespace quire::api
