#include "core/observe/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/observe/bucket_bounds.h"
#include "core/observe/latency_bounds.h"

namespace quire::observe {
namespace {

// Bucket bounds of vLLM, so that quantiles of both servers can be compared; those of latencies: latency_bounds.h.
constexpr double kStepRows[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr double kAnswers[] = {1, 2, 5, 10, 20};
constexpr double kPreemptions[] = {1, 2, 3, 4, 5, 10, 20};
constexpr double kTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                              1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
constexpr double kStepNodes[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr double kBudgetNodes[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr double kStepTime[] = {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5};
constexpr double kSteps[] = {0, 1, 2, 3, 4, 8, 16};
constexpr double kShortTime[] = {.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1};

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  explicit Families(Labels common) : common_(std::move(common)) {}

  void counter(const char* name, const char* help, double value, const Labels& labels = {}) {
    ClientMetric metric = labelled(labels);
    metric.counter.value = value;
    add(name, help, MetricType::Counter, std::move(metric));
  }
  void gauge(const char* name, const char* help, double value, const Labels& labels = {}) {
    ClientMetric metric = labelled(labels);
    metric.gauge.value = value;
    add(name, help, MetricType::Gauge, std::move(metric));
  }
  // Series of the process and of HTTP have no model labels, as in other exporters.
  void plain_counter(const char* name, const char* help, double value, const Labels& labels = {}) {
    ClientMetric metric;
    metric.label = labels;
    metric.counter.value = value;
    add(name, help, MetricType::Counter, std::move(metric));
  }
  void plain_gauge(const char* name, const char* help, double value) {
    ClientMetric metric;
    metric.gauge.value = value;
    add(name, help, MetricType::Gauge, std::move(metric));
  }
  void plain_histogram(const char* name, const char* help, const Histogram& source, const Labels& labels) {
    ClientMetric metric;
    metric.label = labels;
    fill(metric, source);
    add(name, help, MetricType::Histogram, std::move(metric));
  }
  void histogram(const char* name, const char* help, const Histogram& source) {
    ClientMetric metric = labelled({});
    fill(metric, source);
    add(name, help, MetricType::Histogram, std::move(metric));
  }

  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  static void fill(ClientMetric& metric, const Histogram& source) {
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i <= source.bounds().size(); ++i) {
      cumulative += source.count(i);
      const bool last = i == source.bounds().size();
      metric.histogram.bucket.push_back(
          {cumulative, last ? std::numeric_limits<double>::infinity() : source.bounds()[i]});
    }
    metric.histogram.sample_count = cumulative;
    metric.histogram.sample_sum = source.sum();
  }
  ClientMetric labelled(const Labels& labels) const {
    ClientMetric metric;
    metric.label = common_;
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    return metric;
  }
  // Appends to the last family if it has this name: callers add metrics of one name one after the other.
  void add(const char* name, const char* help, MetricType type, ClientMetric metric) {
    if (families_.empty() || families_.back().name != name) families_.push_back({name, help, type, {}});
    families_.back().metric.push_back(std::move(metric));
  }

  Labels common_;
  std::vector<MetricFamily> families_;
};

struct MemoryBytes {
  double size = 0;
  double resident = 0;
};

MemoryBytes memory_bytes() {
  std::ifstream statm("/proc/self/statm");
  MemoryBytes pages;
  statm >> pages.size >> pages.resident;
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  return {pages.size * page, pages.resident * page};
}

double open_files() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return count;
}

double most_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0.0;
}

void add_process(double started, Families& out) {
  const MemoryBytes memory = memory_bytes();
  out.plain_gauge("process_virtual_memory_bytes", "Virtual memory, bytes.", memory.size);
  out.plain_gauge("process_resident_memory_bytes", "Resident memory, bytes.", memory.resident);
  out.plain_gauge("process_start_time_seconds", "Start of the process, unix seconds.", started);
  out.plain_gauge("process_open_fds", "Open file descriptors.", open_files());
  out.plain_gauge("process_max_fds", "Maximum number of open file descriptors.", most_files());
}

void add_http(const Metrics& m, Families& out) {
  m.http_requests.for_each([&](const HttpRequests::Row& row) {
    for (std::size_t hundreds = 0; hundreds < row.counts.size(); ++hundreds) {
      // A rate misses a counter's first increase where the series begins with it: the usual classes begin at 0.
      if (row.counts[hundreds] == 0 && hundreds < 2) continue;
      out.plain_counter("http_requests_total",
                        "HTTP requests that ended, without probes and scrapes, by endpoint and status class.",
                        static_cast<double>(row.counts[hundreds]),
                        {{"handler", std::string(row.handler)},
                         {"method", std::string(row.method)},
                         {"status", std::to_string(hundreds) + "xx"}});
    }
  });
  m.http_requests.for_each([&](const HttpRequests::Row& row) {
    out.plain_histogram("http_request_duration_seconds",
                        "Time from a request's arrival to its answer's end, without probes and scrapes, seconds.",
                        row.seconds, {{"handler", std::string(row.handler)}, {"method", std::string(row.method)}});
  });
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double number(const Counter& counter) { return static_cast<double>(counter.value()); }

void add_cache(const Metrics& m, Families& out) {
  const std::pair<const char*, const Gauge*> states[] = {
      {"empty", &m.kv_blocks_empty}, {"kept", &m.kv_blocks_kept}, {"held", &m.kv_blocks_held}};
  for (const auto& [state, gauge] : states) {
    out.gauge("quire:kv_blocks", "KV blocks by state; kept: free, and still in the prefix cache.", gauge->value(),
              {{"state", state}});
  }
  out.gauge("quire:kv_blocks_pinned", "KV blocks of pinned prefixes, never freed.", m.kv_blocks_pinned.value());
  out.gauge("quire:kv_blocks_saved_by_sharing",
            "KV blocks saved by sharing now: holders minus one, summed over all blocks.", m.kv_blocks_saved.value());
  out.counter("quire:kv_block_hits_total", "KV blocks taken from the prefix cache.", number(m.kv_block_hits));
  out.counter("quire:kv_block_misses_total", "KV blocks needed at admission that were not taken from the prefix cache.",
              number(m.kv_block_misses));
  out.counter("quire:kv_blocks_freed_total", "KV blocks freed by their last holder.", number(m.kv_blocks_freed));
  out.counter("quire:kv_block_evictions_total", "Cached KV blocks evicted because a sequence needed a block.",
              number(m.kv_block_evictions));
  out.counter("quire:kv_block_copies_total", "KV blocks copied before a write because they were shared.",
              number(m.kv_block_copies));
  const std::pair<const char*, const Counter*> modes[] = {{"recompute", &m.preemptions_by_recompute},
                                                          {"swap", &m.preemptions_by_swap}};
  for (const auto& [mode, counter] : modes) {
    out.counter("quire:preemptions_total", "Preemptions, by what happens to the KV blocks: recompute or swap.",
                number(*counter), {{"mode", mode}});
  }
  out.counter("quire:kv_events_published_total", "KV events published: blocks stored, blocks removed, cache cleared.",
              number(m.kv_events_published));
  out.counter("quire:kv_event_batches_published_total", "KV event batches published.", number(m.kv_event_batches));
  out.counter("quire:kv_event_batches_dropped_total", "KV event batches dropped; the whole cache is published instead.",
              number(m.kv_event_batches_lost));
  out.counter("quire:kv_event_replays_total", "Replays of KV events that subscribers requested.",
              number(m.kv_event_replays));
  out.counter("quire:queue_overtakes_total", "Times that a later arrival ran before a queued sequence.",
              number(m.overtakes));
  out.counter("quire:jumped_tokens_total", "Generated tokens that the grammar forced.", number(m.jumped_tokens));
}

void add_prompts(const Metrics& m, Families& out) {
  const double cached = number(m.prompt_tokens_cached);
  const double all = std::max(number(m.prompt_tokens), cached);
  out.counter("vllm:prompt_tokens_total", "Prompt tokens, including those found in the prefix cache.", all);
  constexpr const char* kSources = "Prompt tokens by the source of their K and V.";
  out.counter("vllm:prompt_tokens_by_source_total", kSources, all - cached, {{"source", "local_compute"}});
  out.counter("vllm:prompt_tokens_by_source_total", kSources, cached, {{"source", "local_cache_hit"}});
  out.counter("vllm:prompt_tokens_by_source_total", kSources, 0, {{"source", "external_kv_transfer"}});
  out.counter("vllm:prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.", cached);
}

// Series of single requests: their parameters and their cost.
void add_requests(const Metrics& m, Families& out) {
  out.histogram("vllm:request_time_per_output_token_seconds",
                "Mean time per output token of a sequence after the first, seconds.",
                m.request_time_per_output_token_s);
  out.histogram("vllm:request_inference_time_seconds", "Time from first scheduling to the end, seconds.",
                m.request_inference_time_s);
  out.histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens of a sequence that were computed.",
                m.request_computed_tokens);
  out.histogram("vllm:request_params_max_tokens", "max_tokens of a sequence.", m.request_max_tokens);
  out.histogram("vllm:request_params_n", "Value of n in a request.", m.request_n);
  out.histogram("vllm:request_max_num_generation_tokens", "Tokens of the longest choice of a request.",
                m.request_longest_answer);
  out.histogram("vllm:request_num_preemptions", "Preemptions of a sequence.", m.request_preemptions);
}

void add_slos(const Metrics& m, Families& out) {
  constexpr const char* kSlos[Metrics::kNumSlos] = {"deadline", "ttft", "tpot"};
  constexpr const char* kOutcomes[Metrics::kNumSloOutcomes] = {"kept", "missed", "refused"};
  for (std::size_t slo = 0; slo < m.slos.size(); ++slo) {
    for (std::size_t outcome = 0; outcome < m.slos[slo].size(); ++outcome) {
      out.counter("quire:slo_sequences_total",
                  "Sequences with an SLO (deadline, first token, time per token), by whether it was met.",
                  number(m.slos[slo][outcome]), {{"slo", kSlos[slo]}, {"outcome", kOutcomes[outcome]}});
    }
  }
}

void add_speculation(const Metrics& m, const MetricsInfo& info, Families& out) {
  out.counter("vllm:spec_decode_num_drafts_total", "Drafts verified, one per sequence.", number(m.spec_drafts));
  out.counter("vllm:spec_decode_num_draft_tokens_total", "Draft tokens verified.", number(m.spec_draft_tokens));
  out.counter("vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted.", number(m.spec_accepted_tokens));
  const std::uint32_t num_positions = std::min(info.num_speculative_tokens, Metrics::kMaxDraft);
  for (std::uint32_t i = 0; i < num_positions; ++i) {
    out.counter("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Draft tokens accepted, by position from 0.",
                number(m.spec_accepted_per_pos[i]), {{"position", std::to_string(i)}});
  }
  out.gauge(
      "quire:spec_decode_info", "Speculative decoding settings, as labels.", 1,
      {{"method", info.speculative_method}, {"num_speculative_tokens", std::to_string(info.num_speculative_tokens)}});
  out.counter("quire:spec_decode_proposed_tokens_total",
              "Draft tokens proposed, including those for which a step had no room.", number(m.spec_proposed_tokens));
  out.histogram("quire:spec_decode_step_nodes", "Draft tokens verified in an engine step, of all its sequences.",
                m.spec_step_nodes);
  out.histogram("quire:spec_decode_budget_nodes",
                "Draft tokens allowed for a sequence in a step; 0: drafting does not pay.", m.spec_budget_nodes);
  out.histogram("quire:spec_decode_drafting_seconds", "Drafting time of an engine step, seconds.", m.spec_drafting_s);
  out.histogram("quire:spec_decode_observing_seconds", "Time of the drafter's update in an engine step, seconds.",
                m.spec_observing_s);
  out.gauge("quire:spec_decode_estimated_speedup",
            "Estimated speed-up from drafting in the last step; 1 without drafts.", m.spec_estimated_speedup.value());
  if (m.spec_agreement.value() < 0.0) return;
  out.gauge("quire:spec_decode_self_test_agreement",
            "Share of first draft tokens accepted in the self-test at start, 0 to 1.", m.spec_agreement.value());
}

}  // namespace

class Metrics::Collector final : public prometheus::Collectable {
 public:
  explicit Collector(const Metrics& metrics) : metrics_(metrics) {}
  std::vector<MetricFamily> Collect() const override;

 private:
  const Metrics& metrics_;
};

std::vector<MetricFamily> Metrics::Collector::Collect() const {
  const Metrics& m = metrics_;
  const MetricsInfo& info = m.info_;
  Families out({{"model_name", info.model_name}, {"engine", "0"}});

  out.gauge("vllm:num_requests_running", "Running sequences.", m.requests_running.value());
  out.gauge("vllm:num_requests_waiting", "Queued sequences.", m.requests_waiting.value());
  for (const auto& [reason, waiting] :
       {std::pair("capacity", m.requests_waiting.value()), std::pair("deferred", 0.0)}) {
    out.gauge("vllm:num_requests_waiting_by_reason", "Queued sequences by reason.", waiting, {{"reason", reason}});
  }
  for (const char* state : {"awake", "weights_offloaded", "discard_all"}) {
    out.gauge("vllm:engine_sleep_state", "1 for the current sleep state of the engine.",
              std::string_view(state) == "awake", {{"sleep_state", state}});
  }
  out.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.", m.kv_cache_usage.value());
  out.gauge("vllm:cache_config_info", "KV cache configuration, as labels.", 1,
            {{"block_size", std::to_string(info.block_size)},
             {"num_gpu_blocks", std::to_string(info.num_blocks)},
             {"num_cpu_blocks", std::to_string(info.num_cpu_blocks)},
             {"max_model_len", std::to_string(info.max_model_len)},
             {"cache_dtype", info.cache_dtype},
             {"enable_prefix_caching", info.prefix_caching ? "True" : "False"},
             {"prefix_caching_hash_algo", "none"},  // hits compare tokens
             {"gpu_memory_utilization", "None"},
             {"kv_offloading_backend", "None"},
             {"kv_offloading_size", "None"}});
  out.counter("vllm:num_preemptions_total", "Preemptions because no KV block was free.",
              static_cast<double>(m.preemptions.value()));
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
              static_cast<double>(m.prefix_cache_queries.value()));
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
              static_cast<double>(m.prefix_cache_hits.value()));
  for (const char* name : {"vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total",
                           "vllm:mm_cache_queries_total", "vllm:mm_cache_hits_total"}) {
    out.counter(name, "Always 0: there is no such cache.", 0);
  }
  add_prompts(m, out);
  out.counter("vllm:generation_tokens_total", "Tokens generated.", static_cast<double>(m.generation_tokens.value()));
  using Ended = std::pair<const char*, const Counter*>;
  const Ended finished[] = {{"stop", &m.success_stop},
                            {"length", &m.success_length},
                            {"abort", &m.success_abort},
                            {"error", &m.success_error},
                            {"repetition", nullptr}};  // vLLM's; never the reason here
  for (const auto& [reason, counter] : finished) {
    out.counter("vllm:request_success_total", "Finished sequences by reason.",
                counter == nullptr ? 0.0 : number(*counter), {{"finished_reason", reason}});
  }
  out.counter("vllm:corrupted_requests_total", "Sequences that failed: NaN or infinite logits.",
              static_cast<double>(m.corrupted_requests.value()));
  out.counter("vllm:admission_rejections_total", "Requests rejected at admission (429, 503).",
              static_cast<double>(m.admission_rejections.value()));
  out.histogram("vllm:iteration_tokens_total", "Rows (tokens) of an engine step.", m.iteration_tokens);
  out.histogram("vllm:time_to_first_token_seconds", "Time from arrival to first token, seconds.",
                m.time_to_first_token_s);
  out.histogram("vllm:inter_token_latency_seconds", "Time between two tokens of a sequence, seconds.",
                m.inter_token_latency_s);
  out.histogram("vllm:e2e_request_latency_seconds", "Time from arrival to the end, seconds.", m.e2e_request_latency_s);
  out.histogram("vllm:request_queue_time_seconds", "Time from arrival to first scheduling, seconds.",
                m.request_queue_time_s);
  out.histogram("vllm:request_prefill_time_seconds", "Time from first scheduling to first token, seconds.",
                m.request_prefill_time_s);
  out.histogram("vllm:request_decode_time_seconds", "Time from first to last token, seconds.", m.request_decode_time_s);
  out.histogram("vllm:request_prompt_tokens", "Prompt tokens of a sequence.", m.request_prompt_tokens);
  out.histogram("vllm:request_generation_tokens", "Generated tokens of a sequence.", m.request_generation_tokens);
  add_requests(m, out);

  add_cache(m, out);
  add_slos(m, out);
  if (!info.speculative_method.empty()) add_speculation(m, info, out);
  out.counter("quire:engine_steps_total", "Engine steps completed.", static_cast<double>(m.engine_steps.value()));
  out.histogram("quire:step_time_seconds", "Time of an engine step from submit to commit, seconds.", m.step_time_s);
  out.histogram("quire:disconnect_to_free_seconds", "Time from seeing a cancel to its KV blocks being free, seconds.",
                m.disconnect_to_free_s);
  out.histogram("quire:disconnect_to_free_steps", "Engine steps from a cancel to its KV blocks being free.",
                m.disconnect_to_free_steps);
  out.histogram("quire:event_to_socket_seconds",
                "Time from an engine event to its bytes in the socket, seconds; a write counts from its first event.",
                m.event_to_socket_s);
  out.histogram("quire:io_turn_seconds",
                "CPU time of one handler on an io thread, during which the thread serves no other connection, seconds.",
                m.io_slice_s);
  out.gauge("quire:build_info", "Version and numeric mode, as labels.", 1,
            {{"version", info.version}, {"numeric_mode", info.numeric_mode}});
  for (int hundreds = 2; hundreds < kNumStatusClasses; ++hundreds) {
    out.counter("quire:http_responses_total", "HTTP answers by status class, without probes and scrapes.",
                static_cast<double>(m.http_responses[static_cast<std::size_t>(hundreds)].value()),
                {{"status", std::to_string(hundreds) + "xx"}});
  }
  out.counter("quire:internal_errors_total", "Server faults that ended one request or job.",
              static_cast<double>(m.internal_errors.value()));
  out.counter("quire:client_disconnects_total", "Clients that disconnected before their answer was complete.",
              static_cast<double>(m.client_disconnects.value()));
  out.gauge("quire:open_connections", "Open client connections.", m.open_connections.value());
  out.counter("quire:trace_spans_sent_total", "Spans that the trace receiver accepted.", number(m.trace_spans_sent));
  const std::pair<const char*, const Counter*> dropped[] = {{"no_room", &m.trace_spans_without_room},
                                                            {"not_sent", &m.trace_spans_not_sent},
                                                            {"rejected", &m.trace_spans_rejected}};
  for (const auto& [reason, counter] : dropped) {
    out.counter("quire:trace_spans_dropped_total", "Spans that were not delivered, by reason.", number(*counter),
                {{"reason", reason}});
  }
  out.counter("quire:log_lines_dropped_total", "Log lines dropped because the reader of standard error was too slow.",
              static_cast<double>(log_lines_dropped()));
  add_http(m, out);
  add_process(m.started_s_, out);
  out.plain_counter("process_cpu_seconds_total", "CPU time used, seconds.", cpu_seconds());
  return out.take();
}

Metrics::Metrics(MetricsInfo info)
    : iteration_tokens(kStepRows),
      time_to_first_token_s(kLatencySeconds),
      inter_token_latency_s(kLatencySeconds),
      e2e_request_latency_s(kLatencySeconds),
      request_queue_time_s(kLatencySeconds),
      request_prefill_time_s(kLatencySeconds),
      request_decode_time_s(kLatencySeconds),
      request_prompt_tokens(kTokens),
      request_generation_tokens(kTokens),
      request_time_per_output_token_s(kLatencySeconds),
      request_inference_time_s(kLatencySeconds),
      request_computed_tokens(kTokens),
      request_max_tokens(kTokens),
      request_preemptions(kPreemptions),
      step_time_s(kStepTime),
      disconnect_to_free_s(kStepTime),
      disconnect_to_free_steps(kSteps),
      spec_step_nodes(kStepNodes),
      spec_budget_nodes(kBudgetNodes),
      spec_drafting_s(kShortTime),
      spec_observing_s(kShortTime),
      http_requests(info.http_handlers),
      request_n(kAnswers),
      request_longest_answer(kTokens),
      event_to_socket_s(kStepTime),
      io_slice_s(kShortTime),
      info_(std::move(info)),
      started_s_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()),
      collector_(std::make_unique<Collector>(*this)) {
  spec_estimated_speedup.set(1.0);
  spec_agreement.set(-1.0);
}

Metrics::~Metrics() = default;

std::string Metrics::render() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, collector_->Collect());
  return with_points(out.str());
}

}  // namespace quire::observe
