// Everything that app/ passes to api/ at start: the interfaces to the engine, and the facts that answers need. Plain
// data.
// Owner   app; the objects referred to outlive the Server.
// Thread  read by every io thread and worker; never written after start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/limits/budgets.h"
#include "api/limits/key_table.h"
#include "api/limits/request_book.h"
#include "api/services/chat_model.h"
#include "api/services/grammars.h"
#include "api/services/model_names.h"
#include "api/tracing/tracer.h"
#include "api/wire/workers.h"
#include "core/base/ids.h"
#include "core/bridge/admission_queue.h"
#include "core/bridge/control_queue.h"
#include "core/bridge/doorbell.h"
#include "core/bridge/engine_status.h"
#include "core/concurrent/latest.h"
#include "core/observe/metrics.h"
#include "core/sample/params.h"
#include "core/text/tokenizer.h"

namespace quire::api {

// The limits of one request. A value of limit + 1 is answered 400 naming the field.
struct RequestLimits {
  std::uint32_t max_prompts = 128;      // prompts in a list
  std::uint32_t max_inputs = 2048;      // inputs of a request for embeddings; OpenAI's limit
  std::uint32_t max_stop_strings = 16;  // strings in `stop`
  std::uint32_t max_stop_bytes = 512;   // bytes of all of these together
  std::uint32_t max_user_bytes = 256;   // bytes of `user`
  std::uint32_t max_choices = 128;      // prompts * best_of; also the limit of `n` and `best_of`
  std::uint32_t max_salt_bytes = 128;   // bytes of `cache_salt`
  std::uint32_t max_request_id_bytes = 128;
  std::uint32_t max_label_bytes = 128;  // bytes of a header that is a label, a fairness id or a session
  std::uint32_t max_logprobs = 20;      // likeliest tokens returned beside a token
  std::uint32_t max_logit_bias = 1024;  // tokens in `logit_bias`
  std::uint32_t max_stop_token_ids = 128;
  std::uint32_t max_bad_words = 128;                // strings in `bad_words`
  std::uint32_t max_bad_word_bytes = 4096;          // bytes of all of these together
  std::uint32_t max_grammar_bytes = 65536;          // bytes of a schema, a regular expression or a grammar
  std::uint32_t max_tokenized_bytes = 1u << 20;     // bytes of a text for /tokenize
  std::uint32_t max_detokenized_tokens = 1u << 18;  // ids for /detokenize
  std::uint32_t max_messages = 4096;                // messages of a conversation
  std::uint32_t max_content_parts = 1024;           // text parts of a message
  std::uint32_t max_tool_calls = 128;               // calls in a message
  std::uint32_t max_tools = 128;                    // functions in `tools`
};

struct Services {
  bridge::AdmissionQueue& queue;
  Workers& workers;            // read requests, write long answers
  Budgets& budgets;            // memory of bodies and answers
  bridge::Doorbell& doorbell;  // wakes the engine, for streams
  const bridge::EngineStatus& engine;
  bridge::ControlQueue& control;    // orders to save, load and clear the prefix cache
  requests::RequestBook& requests;  // running ones and the most recent finished ones
  observe::Metrics& metrics;

  std::shared_ptr<const text::Tokenizer> tokenizer;
  ModelNames model_names;
  std::int64_t created = 0;         // unix seconds: when the server started
  std::uint32_t max_model_len = 0;  // tokens of prompt and answer together
  std::uint32_t logits_width = 0;   // token ids are in [0, logits_width)
  std::uint32_t hidden_size = 0;    // dimensions of an embedding
  std::uint32_t max_num_seqs = 64;  // sequences that run at the same time, and so the largest width of a beam search
  bool first_come = true;           // policy fcfs: waiting sequences are admitted before later ones
  std::uint32_t model_window = 0;   // the model's widest sliding window, in positions; 0: it has none
  bool prefix_caching = true;       // computed blocks are cached for requests with the same prefix
  // Names of the drafters. The first is used unless a request names another; empty: no speculation.
  std::vector<std::string> speculative_methods{};
  sample::Accept accept = sample::Accept::kMatch;  // acceptance rule of draft tokens, unless a request names another
  bool adaptive_drafts = false;                    // draft sizes follow the expected speedup: only kMatch is allowed
  std::vector<TokenId> eos;                        // end an answer, unless ignore_eos
  std::optional<TokenId> bos;                      // replaces an empty prompt; none: "" is answered 400
  sample::Params defaults;                         // from generation_config.json; seed and choice_index are not used
  float repetition_penalty = 1.0f;                 // likewise: the default of a request
  std::optional<std::uint32_t> max_new_tokens{};   // likewise: caps the default of max_tokens; empty: no cap
  std::string fingerprint;                         // system_fingerprint
  std::string version;
  RequestLimits limits;
  // Null: a request with a grammar is answered 400.
  std::shared_ptr<Grammars> grammars{};
  std::string cache_dir;                                     // directory of saved caches; empty: no saving, no loading
  std::shared_ptr<const chat::ChatModel> chat = {};          // null: no chat template
  std::string tokenizer_info = {};                           // body of /tokenizer_info; empty: 404
  const concurrent::Latest<keys::KeyTable>* keys = nullptr;  // null: no API key is needed
  const tracing::Tracer* tracer = nullptr;                   // null: no request is traced
};

}  // namespace quire::api
