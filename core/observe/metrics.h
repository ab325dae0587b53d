// Every series that quire exports, in one struct: engine and api/ write fields, render() makes the Prometheus text.
// Names and types are vLLM's (`vllm:`) if vLLM has the series, so that its dashboards and routers work unchanged; our
// own begin with `quire:`.
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

// Labels and the shape of the cache: constant while the server runs.
struct MetricsInfo {
  std::string model_name;
  std::string version;
  std::string numeric_mode;
  std::uint32_t block_size = 0;
  std::uint32_t num_blocks = 0;
  std::uint32_t max_model_len = 0;
  std::uint32_t num_cpu_blocks = 0;  // host blocks for swapped sequences
  std::string cache_dtype{};         // its name in --kv-cache-dtype
  bool prefix_caching = true;
  // Series of speculation are exported only with a drafter, as in vLLM.
  std::string speculative_method{};          // its name in --speculative-config; empty: none
  std::uint32_t num_speculative_tokens = 0;  // positions that have a series of their own, at most kMaxDraft
  std::vector<std::string> http_handlers{};  // paths that have a series of their own
};

class Metrics {
 public:
  explicit Metrics(MetricsInfo info);
  ~Metrics();

  // Prometheus text exposition format 0.0.4.
  std::string render() const;

  // ---- written by the engine
  Gauge requests_running;  // running sequences
  Gauge requests_waiting;  // sequences that wait in the scheduler
  Gauge kv_cache_usage;    // held blocks / all blocks, 0..1
  Counter preemptions;
  // Tokens looked up at a sequence's first admission. Prompts with results wanted of every row are not counted.
  Counter prefix_cache_queries;
  Counter prefix_cache_hits;  // those of them that were found
  Gauge kv_blocks_empty;      // empty + cached + held = all blocks
  Gauge kv_blocks_kept;       // cached: without a holder, evictable
  Gauge kv_blocks_held;
  Gauge kv_blocks_pinned;      // held blocks of --pin-prefix
  Gauge kv_blocks_saved;       // blocks saved by sharing: holders - 1, summed over held blocks
  Counter kv_block_hits;       // blocks taken from the prefix cache at admission
  Counter kv_block_misses;     // other blocks that sequences needed at admission
  Counter kv_blocks_freed;     // blocks given back by their last holder, and empty or cached since then
  Counter kv_block_evictions;  // cached blocks evicted because a sequence needed one
  Counter kv_block_copies;     // copies on write
  Counter preemptions_by_recompute;
  Counter preemptions_by_swap;
  Counter kv_event_batches_lost;  // KV event batches dropped because the queue to the publisher was full
  Counter overtakes;              // one for each waiting sequence that a later arrival was admitted before
  Counter prompt_tokens;          // prompt tokens, cached ones included, counted when their prompt is computed
  Counter prompt_tokens_cached;   // those of them found in the prefix cache
  Counter generation_tokens;
  Counter jumped_tokens;  // generated tokens that the grammar forced (jump-ahead), without a step of their own
  Counter success_stop;
  Counter success_length;
  Counter success_abort;
  Counter success_error;
  Counter corrupted_requests;  // sequences that ended because their logits were not finite
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
  Histogram request_time_per_output_token_s;  // time from first token to end / (tokens - 1); 0 for one token or none
  Histogram request_inference_time_s;         // from first admission to end
  Histogram request_computed_tokens;          // prompt tokens that were not found in the prefix cache
  Histogram request_max_tokens;               // its max_tokens, if above 0
  Histogram request_preemptions;
  Histogram step_time_s;
  Histogram disconnect_to_free_s;      // from the iteration that sees cancels to their blocks being in the pool
  Histogram disconnect_to_free_steps;  // steps from a sequence's cancel to its blocks being in the pool

  // Sequences with an SLO, by outcome; api/ counts kRefused.
  enum Slo : std::uint8_t { kDeadline, kFirstToken, kTokenTime, kNumSlos };
  enum SloOutcome : std::uint8_t { kKept, kMissed, kRefused, kNumSloOutcomes };
  std::array<std::array<Counter, kNumSloOutcomes>, kNumSlos> slos;

  // ---- written by the engine with a drafter
  static constexpr std::uint32_t kMaxDraft = 64;         // most nodes of a draft, and so its largest depth
  Counter spec_drafts;                                   // drafts verified, of at least one node
  Counter spec_draft_tokens;                             // nodes of these
  Counter spec_accepted_tokens;                          // those of them that were accepted
  std::array<Counter, kMaxDraft> spec_accepted_per_pos;  // the same by depth: [0] is depth 1
  Counter spec_proposed_tokens;  // nodes that the drafter proposed, including those that no step had room for
  Histogram spec_step_nodes;     // nodes verified in a step without prompt rows, all sequences together; 0 counts
  Histogram spec_budget_nodes;   // nodes that a sequence may have in a step (adaptive depth); 0 counts
  Histogram spec_drafting_s;     // time of propose() in a step
  Histogram spec_observing_s;    // time of observe() in a step
  Gauge spec_estimated_speedup;  // tokens per second with the last step's drafts / without any; 1: no drafts
  Gauge spec_agreement;  // startup test: fraction of first draft tokens that were right, 0..1; < 0: not measured

  // ---- written by the publisher of KV events
  Counter kv_events_published;
  Counter kv_event_batches;  // messages with these events
  Counter kv_event_replays;  // replay requests answered

  // ---- written by api/
  static constexpr int kNumStatusClasses = 6;
  std::array<Counter, kNumStatusClasses> http_responses;  // by status / 100: [2] is 2xx
  HttpRequests http_requests;                             // without probes and scrapes, as http_responses
  Histogram request_n;                                    // n of a request
  Histogram request_longest_answer;                       // tokens of the longest of its n answers
  Counter admission_rejections;                           // 429 and 503 at admission
  Counter client_disconnects;
  Counter internal_errors;  // exceptions that ended one request, job or io handler, and nothing else
  Gauge open_connections;
  Counter trace_spans_without_room;  // dropped: the export queue was full

  // ---- written by the exporter of traces
  Counter trace_spans_sent;
  Counter trace_spans_not_sent;  // dropped: the receiver could not be reached, or refused the whole batch
  Counter trace_spans_rejected;  // rejected by the receiver, out of a batch that it took

  // ---- written by io threads
  Histogram event_to_socket_s;  // per write to a stream: from the engine's push of its first event to the socket
  Histogram io_slice_s;         // CPU time of one handler on an io thread, the admin port's left out

 private:
  class Collector;
  MetricsInfo info_;
  double started_s_;  // unix time
  std::unique_ptr<Collector> collector_;
};

}  // namespace quire::observe
