// The engine's own check of a submission: api/ has refused bad requests already, and no kernel reads what fails here.
// Thread  any; pure functions.
#pragma once

#include <cstdint>

#include "core/bridge/admission_queue.h"
#include "core/flow/request.h"

namespace quire::engine {

struct RequestBounds {
  std::uint32_t vocab = 0;          // token ids are below it
  std::uint32_t max_model_len = 0;  // prompt and max_tokens together
  std::uint32_t max_num_seqs = 0;   // widest beam search
  bool has_window = false;          // the model has a sliding window: no kv_policy
};

// True if the engine can run the request: ids, rules, lengths, KV policy, beam search and pooling are in range.
bool fits(const flow::Request& request, const RequestBounds& bounds);

// True if the submission's stream has the buffers that its request fills: prompt scores or an embedding.
bool has_output_buffers(const bridge::Submission& submission, std::uint32_t hidden_width);

}  // namespace quire::engine
