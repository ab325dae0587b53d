// Every series quire exports, in one struct: the engine and api/ write fields, render() makes the Prometheus text.
// Names and types are vLLM's where it has the series (`vllm:`), so dashboards and routers work unchanged; our own:
// `quire:`.
// Thread  any.
// Source  names, types and buckets: vLLM v1's metrics/loggers.py, as documented.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/observe/http_requests.h"
#include "core/observe/instruments.h"

namespace quire::observe {

// What does not change while the server runs: labels and the cache's shape.
struct MetricsInfo {
  std::string model_name;
  std::string version;
  std::string numeric_mode;
  std::uint32_t block_size = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t num_cpu_blocks = 0;  // of main memory, for preempted sequences
  std::string cache_dtype{};         // as --kv-cache-dtype calls it
  bool prefix_caching = true;
  // Series of speculation are there only where there is some, as vLLM's are.
  std::string speculative_method{};          // as --speculative-config calls it; empty: none
  std::uint32_t num_speculative_tokens = 0;  // so many positions are told apart, at most kMaxDraft
  std::vector<std::string> http_handlers{};  // the paths that are told apart
};

class Metrics {
 public:
  explicit Metrics(MetricsInfo info);
  ~Metrics();

  // Prometheus text exposition format 0.0.4.
  std::string render() const;

  // ---- written by the engine
  Gauge requests_running;  // sequences with blocks
  Gauge requests_waiting;  // sequences admitted and without blocks
  Gauge kv_cache_usage;    // blocks held / blocks, 0..1
  Counter preemptions;
  Counter prefix_cache_queries;  // prompt tokens that were looked up, each request once
  Counter prefix_cache_hits;     // those of them that were there
  Gauge kv_blocks_empty;         // empty + kept + held = all blocks
  Gauge kv_blocks_kept;          // nobody holds them, but their content may be wanted again
  Gauge kv_blocks_held;
  Gauge kv_blocks_pinned;      // of the held: --pin-prefix
  Gauge kv_blocks_saved;       // by sharing: holders - 1, summed over the held blocks
  Counter kv_block_hits;       // adopted from the prefix cache instead of computed
  Counter kv_block_misses;     // looked up in the prefix cache and not there
  Counter kv_blocks_freed;     // given back by their last holder: empty or kept since
  Counter kv_block_evictions;  // kept blocks emptied because somebody needed one
  Counter kv_block_copies;     // copies on write
  Counter preemptions_by_recompute;
  Counter preemptions_by_swap;
  Counter kv_event_batches_lost;  // of what became of the cache: nobody had taken those before
  Counter overtakes;              // one for each waiting sequence that a later arrival went before
  Counter prompt_tokens;          // of whole prompts, those found in the cache included, once each is computed
  Counter prompt_tokens_cached;   // of these, those that were found
  Counter generation_tokens;
  Counter jumped_tokens;  // of them, those that waited for no step of their own
  Counter success_stop;
  Counter success_length;
  Counter success_abort;
  Counter success_error;
  Counter corrupted_requests;  // ended because their logits were not finite
  Counter engine_steps;
  Histogram iteration_tokens;  // rows of a step
  Histogram time_to_first_token_s;
  Histogram inter_token_latency_s;
  Histogram e2e_request_latency_s;
  Histogram request_queue_time_s;
  Histogram request_prefill_time_s;
  Histogram request_decode_time_s;
  Histogram request_prompt_tokens;
  Histogram request_generation_tokens;
  Histogram request_time_per_output_token_s;  // from the first token to the end, by tokens less one; 0 of one token
  Histogram request_inference_time_s;         // from first run to end
  Histogram request_computed_tokens;          // of its prompt, those that were not found in the cache
  Histogram request_max_tokens;               // what it might have said at most
  Histogram request_preemptions;
  Histogram step_time_s;
  Histogram disconnect_to_free_s;      // from the engine seeing the cancel to the blocks being back
  Histogram disconnect_to_free_steps;  // of each sequence: steps done between its cancel and its blocks being back

  // Sequences by what became of what their requests asked of their time; refused ones are counted by api/.
  enum Slo : std::uint8_t { kDeadline, kFirstToken, kTokenTime, kNumSlos };
  enum SloOutcome : std::uint8_t { kKept, kMissed, kRefused, kNumSloOutcomes };
  std::array<std::array<Counter, kNumSloOutcomes>, kNumSlos> slos;

  // ---- written by the engine where it speculates
  static constexpr std::uint32_t kMaxDraft = 64;  // nodes of a draft, so also the deepest
  Counter spec_drafts;           // drafts verified, of one node at least: one for each sequence in each step
  Counter spec_draft_tokens;     // their nodes
  Counter spec_accepted_tokens;  // of these, the ones on the path that was taken
  std::array<Counter, kMaxDraft> spec_accepted_per_pos;  // of these, by depth less one: [0] is right behind the root
  Counter spec_proposed_tokens;  // nodes the drafter gave, those included that no step had room for
  Histogram spec_step_nodes;     // of a step in which anybody could draft: nodes verified, of all sequences; 0 counts
  Histogram spec_budget_nodes;   // adaptive decisions: nodes allowed to a sequence in a step; 0 counts
  Histogram spec_drafting_s;     // of a step: propose()
  Histogram spec_observing_s;    // of a step: observe()
  Gauge spec_estimated_speedup;  // tokens a second with the budgets of the last step / without; 1: nobody drafts
  Gauge spec_agreement;          // when loaded: first guesses that the model said / all, 0..1; below 0: not measured

  // ---- written by who publishes what became of the cache
  Counter kv_events_published;
  Counter kv_event_batches;  // in so many messages
  Counter kv_event_replays;  // answers to who had missed some

  // ---- written by api/
  static constexpr int kNumStatusClasses = 6;
  std::array<Counter, kNumStatusClasses> http_responses;  // by hundreds: [2] is 2xx
  HttpRequests http_requests;                             // probes and scrapes left out, as in http_responses
  Histogram request_n;                                    // answers that a request asked for
  Histogram request_longest_answer;                       // tokens of the longest of its answers
  Counter admission_rejections;                           // 429 and 503 at admission
  Counter client_disconnects;
  Counter internal_errors;  // exceptions that ended one request, one job or one turn, and nothing else
  Gauge open_connections;
  Counter trace_spans_without_room;  // dropped: the line of those to be sent was full

  // ---- written by the exporter of traces
  Counter trace_spans_sent;
  Counter trace_spans_not_sent;  // dropped: the receiver could not be reached, or said no to all of a request
  Counter trace_spans_rejected;  // by the receiver, out of a request that it took
  Histogram event_to_socket_s;   // of a stream's write: from the engine telling its first event to the socket having it
  Histogram io_turn_s;           // processor time of one handler on an io thread; the admin port's left out

 private:
  class Collector;
  MetricsInfo info_;
  double started_s_;  // unix time
  std::unique_ptr<Collector> collector_;
};

}  // namespace quire::observe
