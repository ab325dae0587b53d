#include "core/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace quire::observe {
namespace {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

struct Family {
  std::string type;
  std::string help;
  std::vector<Sample> samples;
};

// Reads the Prometheus text format 0.0.4 as strictly as a scraper may: anything unexpected fails the test.
class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# HELP ")) {
        begin_family(line.substr(7));
      } else if (line.starts_with("# TYPE ")) {
        const std::size_t space = line.find(' ', 7);
        EXPECT_EQ(line.substr(7, space - 7), last_) << "TYPE follows its HELP";
        families_[last_].type = line.substr(space + 1);
      } else {
        read_sample(line);
      }
    }
  }

  const std::map<std::string, Family>& families() const { return families_; }

  // The one sample with this name and, besides the common labels, these.
  double value(const std::string& name, const Labels& labels = {}) const {
    std::vector<double> found;
    for (const auto& [family_name, family] : families_) {
      for (const Sample& sample : family.samples) {
        if (sample.name == name &&
            std::includes(sample.labels.begin(), sample.labels.end(), labels.begin(), labels.end()))
          found.push_back(sample.value);
      }
    }
    EXPECT_EQ(found.size(), 1u) << name;
    return found.empty() ? std::numeric_limits<double>::quiet_NaN() : found[0];
  }

 private:
  void begin_family(const std::string& rest) {
    const std::size_t space = rest.find(' ');
    last_ = rest.substr(0, space);
    EXPECT_FALSE(families_.contains(last_)) << last_ << " stands twice";
    families_[last_].help = space == std::string::npos ? "" : rest.substr(space + 1);
  }

  void read_sample(const std::string& line) {
    Sample sample;
    std::size_t at = line.find_first_of("{ ");
    ASSERT_NE(at, std::string::npos) << line;
    sample.name = line.substr(0, at);
    EXPECT_TRUE(sample.name.starts_with(last_)) << line << " stands outside its family";
    if (line[at] == '{') {
      ++at;
      while (line.at(at) != '}') {
        const std::size_t equals = line.find('=', at);
        const std::string key = line.substr(at, equals - at);
        ASSERT_EQ(line.at(equals + 1), '"') << line;
        std::string text;
        for (at = equals + 2; line.at(at) != '"'; ++at) {
          if (line[at] == '\\') {
            ++at;
            text += line.at(at) == 'n' ? '\n' : line[at];
          } else {
            text += line[at];
          }
        }
        EXPECT_TRUE(sample.labels.emplace(key, text).second) << line;
        if (line.at(++at) == ',') ++at;
      }
      ++at;
    }
    const std::string number = line.substr(at + 1);
    sample.value = number == "+Inf" ? std::numeric_limits<double>::infinity() : std::stod(number);
    families_[last_].samples.push_back(sample);
  }

  std::string last_;
  std::map<std::string, Family> families_;
};

MetricsInfo info(std::string model = "tiny") {
  return {.model_name = std::move(model),
          .version = "0.1.0",
          .numeric_mode = "cpu-f32",
          .block_size = 16,
          .num_blocks = 128,
          .max_model_len = 2048,
          .cache_dtype = "bf16"};
}

TEST(Metrics, ExportsTheSeriesThatDashboardsOfVllmRead) {
  const std::map<std::string, std::string> wanted = {
      {"vllm:num_requests_running", "gauge"},
      {"vllm:num_requests_waiting", "gauge"},
      {"vllm:kv_cache_usage_perc", "gauge"},
      {"vllm:cache_config_info", "gauge"},
      {"vllm:num_preemptions_total", "counter"},
      {"vllm:prompt_tokens_total", "counter"},
      {"vllm:generation_tokens_total", "counter"},
      {"vllm:request_success_total", "counter"},
      {"vllm:corrupted_requests_total", "counter"},
      {"vllm:iteration_tokens_total", "histogram"},
      {"vllm:time_to_first_token_seconds", "histogram"},
      {"vllm:inter_token_latency_seconds", "histogram"},
      {"vllm:e2e_request_latency_seconds", "histogram"},
      {"vllm:request_queue_time_seconds", "histogram"},
      {"vllm:request_prefill_time_seconds", "histogram"},
      {"vllm:request_decode_time_seconds", "histogram"},
      {"vllm:request_prompt_tokens", "histogram"},
      {"vllm:request_generation_tokens", "histogram"},
      {"vllm:num_requests_waiting_by_reason", "gauge"},
      {"vllm:external_prefix_cache_queries_total", "counter"},
      {"vllm:external_prefix_cache_hits_total", "counter"},
      {"vllm:mm_cache_queries_total", "counter"},
      {"vllm:mm_cache_hits_total", "counter"},
      {"vllm:engine_sleep_state", "gauge"},
      {"vllm:prompt_tokens_cached_total", "counter"},
      {"vllm:prompt_tokens_by_source_total", "counter"},
      {"vllm:request_time_per_output_token_seconds", "histogram"},
      {"vllm:request_inference_time_seconds", "histogram"},
      {"vllm:request_prefill_kv_computed_tokens", "histogram"},
      {"vllm:request_params_n", "histogram"},
      {"vllm:request_params_max_tokens", "histogram"},
      {"vllm:request_max_num_generation_tokens", "histogram"},
      {"vllm:request_num_preemptions", "histogram"},
      {"process_virtual_memory_bytes", "gauge"},
      {"process_resident_memory_bytes", "gauge"},
      {"process_start_time_seconds", "gauge"},
      {"process_open_fds", "gauge"},
      {"process_max_fds", "gauge"},
      {"process_cpu_seconds_total", "counter"},
  };
  const Exposition text(Metrics(info()).render());
  for (const auto& [name, type] : wanted) {
    ASSERT_TRUE(text.families().contains(name)) << name;
    EXPECT_EQ(text.families().at(name).type, type) << name;
  }
}

TEST(Metrics, EverySeriesHasHelpAKnownTypeAndTheModelsName) {
  const Exposition text(Metrics(info()).render());
  const std::set<std::string> types = {"counter", "gauge", "histogram"};
  for (const auto& [name, family] : text.families()) {
    EXPECT_FALSE(family.help.empty()) << name;
    EXPECT_TRUE(types.contains(family.type)) << name << " is a " << family.type;
    EXPECT_FALSE(family.samples.empty()) << name;
    const bool of_the_model = !name.starts_with("process_") && !name.starts_with("http_");
    for (const Sample& sample : family.samples) {
      EXPECT_EQ(sample.labels.contains("model_name"), of_the_model) << sample.name;
      if (!of_the_model) continue;
      EXPECT_TRUE(sample.labels.contains("engine")) << sample.name;
    }
  }
}

TEST(Metrics, NoTwoSamplesShareNameAndLabels) {
  const Exposition text(Metrics(info()).render());
  for (const auto& [name, family] : text.families()) {
    std::set<std::pair<std::string, Labels>> seen;
    for (const Sample& sample : family.samples) {
      EXPECT_TRUE(seen.emplace(sample.name, sample.labels).second) << sample.name;
    }
  }
}

TEST(Metrics, EveryHistogramsBucketsAscendAndEndInItsCount) {
  MetricsInfo speculates = info();
  speculates.speculative_method = "ngram";
  Metrics metrics(speculates);
  for (Histogram* histogram : {&metrics.iteration_tokens,
                               &metrics.time_to_first_token_s,
                               &metrics.inter_token_latency_s,
                               &metrics.e2e_request_latency_s,
                               &metrics.request_queue_time_s,
                               &metrics.request_prefill_time_s,
                               &metrics.request_decode_time_s,
                               &metrics.request_prompt_tokens,
                               &metrics.request_generation_tokens,
                               &metrics.step_time_s,
                               &metrics.disconnect_to_free_s,
                               &metrics.disconnect_to_free_steps,
                               &metrics.event_to_socket_s,
                               &metrics.io_slice_s,
                               &metrics.spec_step_nodes,
                               &metrics.spec_budget_nodes,
                               &metrics.spec_drafting_s,
                               &metrics.spec_observing_s,
                               &metrics.request_time_per_output_token_s,
                               &metrics.request_inference_time_s,
                               &metrics.request_computed_tokens,
                               &metrics.request_max_tokens,
                               &metrics.request_preemptions,
                               &metrics.request_n,
                               &metrics.request_longest_answer}) {
    for (const double value : {0.00005, 0.003, 0.4, 3.0, 70.0, 900.0, 1e7}) histogram->observe(value);
  }
  const Exposition text(metrics.render());
  int histograms = 0;
  for (const auto& [name, family] : text.families()) {
    if (family.type != "histogram") continue;
    ++histograms;
    double last_bound = -1;
    double last_count = 0;
    for (const Sample& sample : family.samples) {
      if (sample.name != name + "_bucket") continue;
      const std::string& le = sample.labels.at("le");
      const double bound = le == "+Inf" ? std::numeric_limits<double>::infinity() : std::stod(le);
      EXPECT_GT(bound, last_bound) << name;
      EXPECT_GE(sample.value, last_count) << name << " le " << le;
      last_bound = bound;
      last_count = sample.value;
    }
    EXPECT_EQ(last_bound, std::numeric_limits<double>::infinity()) << name;
    EXPECT_EQ(last_count, 7) << name;
    EXPECT_EQ(text.value(name + "_count"), 7) << name;
    EXPECT_NEAR(text.value(name + "_sum"), 10000973.40305, 0.01) << name;
  }
  EXPECT_EQ(histograms, 25);
}

TEST(Metrics, RendersWhatTheEngineAndTheApiWrote) {
  Metrics metrics(info());
  metrics.requests_running.set(3);
  metrics.requests_waiting.set(4);
  metrics.kv_cache_usage.set(0.25);
  metrics.preemptions.add(2);
  metrics.prompt_tokens.add(1000);
  metrics.generation_tokens.add(9007199254740993u);
  metrics.success_stop.add(5);
  metrics.success_abort.add(1);
  metrics.http_responses[4].add(6);
  metrics.admission_rejections.add(7);
  metrics.open_connections.set(8);

  const Exposition text(metrics.render());
  EXPECT_EQ(text.value("vllm:num_requests_running"), 3);
  EXPECT_EQ(text.value("vllm:num_requests_waiting"), 4);
  EXPECT_EQ(text.value("vllm:kv_cache_usage_perc"), 0.25);
  EXPECT_EQ(text.value("vllm:num_preemptions_total"), 2);
  EXPECT_EQ(text.value("vllm:prompt_tokens_total"), 1000);
  EXPECT_NEAR(text.value("vllm:generation_tokens_total"), 9007199254740993.0, 2);
  EXPECT_EQ(text.value("vllm:request_success_total", {{"finished_reason", "stop"}}), 5);
  EXPECT_EQ(text.value("vllm:request_success_total", {{"finished_reason", "length"}}), 0);
  EXPECT_EQ(text.value("vllm:request_success_total", {{"finished_reason", "abort"}}), 1);
  EXPECT_EQ(text.value("vllm:request_success_total", {{"finished_reason", "error"}}), 0);
  EXPECT_EQ(text.value("quire:http_responses_total", {{"status", "4xx"}}), 6);
  EXPECT_EQ(text.value("vllm:admission_rejections_total"), 7);
  EXPECT_EQ(text.value("quire:open_connections"), 8);
}

// A field each, a number each: a series that shows another field's is found.
TEST(Metrics, EverySeriesOfTheCacheShowsItsOwnField) {
  Metrics metrics(info());
  metrics.kv_blocks_empty.set(1);
  metrics.kv_blocks_kept.set(2);
  metrics.kv_blocks_held.set(3);
  metrics.kv_blocks_pinned.set(4);
  metrics.kv_blocks_saved.set(5);
  metrics.kv_block_hits.add(6);
  metrics.kv_block_misses.add(7);
  metrics.kv_blocks_freed.add(8);
  metrics.kv_block_evictions.add(9);
  metrics.kv_block_copies.add(10);
  metrics.preemptions_by_recompute.add(11);
  metrics.preemptions_by_swap.add(12);
  metrics.overtakes.add(13);
  metrics.kv_events_published.add(14);
  metrics.kv_event_batches.add(15);
  metrics.kv_event_batches_lost.add(16);
  metrics.kv_event_replays.add(17);

  const Exposition text(metrics.render());
  EXPECT_EQ(text.value("quire:kv_blocks", {{"state", "empty"}}), 1);
  EXPECT_EQ(text.value("quire:kv_blocks", {{"state", "kept"}}), 2);
  EXPECT_EQ(text.value("quire:kv_blocks", {{"state", "held"}}), 3);
  EXPECT_EQ(text.value("quire:kv_blocks_pinned"), 4);
  EXPECT_EQ(text.value("quire:kv_blocks_saved_by_sharing"), 5);
  EXPECT_EQ(text.value("quire:kv_block_hits_total"), 6);
  EXPECT_EQ(text.value("quire:kv_block_misses_total"), 7);
  EXPECT_EQ(text.value("quire:kv_blocks_freed_total"), 8);
  EXPECT_EQ(text.value("quire:kv_block_evictions_total"), 9);
  EXPECT_EQ(text.value("quire:kv_block_copies_total"), 10);
  EXPECT_EQ(text.value("quire:preemptions_total", {{"mode", "recompute"}}), 11);
  EXPECT_EQ(text.value("quire:preemptions_total", {{"mode", "swap"}}), 12);
  EXPECT_EQ(text.value("quire:queue_overtakes_total"), 13);
  EXPECT_EQ(text.value("quire:kv_events_published_total"), 14);
  EXPECT_EQ(text.value("quire:kv_event_batches_published_total"), 15);
  EXPECT_EQ(text.value("quire:kv_event_batches_dropped_total"), 16);
  EXPECT_EQ(text.value("quire:kv_event_replays_total"), 17);
  for (const auto& [name, family] : text.families()) {
    if (name.ends_with("_total")) {
      EXPECT_NE(family.type, "gauge") << name;
    } else if (name.starts_with("quire:kv_blocks")) {
      EXPECT_EQ(family.type, "gauge") << name;
    }
  }
}

MetricsInfo speculating(std::uint32_t num_tokens) {
  MetricsInfo out = info();
  out.speculative_method = "ngram";
  out.num_speculative_tokens = num_tokens;
  return out;
}

TEST(Metrics, EveryReasonToDropASpanHasItsSeries) {
  Metrics metrics({});
  metrics.trace_spans_sent.add(1);
  metrics.trace_spans_without_room.add(2);
  metrics.trace_spans_not_sent.add(3);
  metrics.trace_spans_rejected.add(4);
  const Exposition page(metrics.render());
  EXPECT_EQ(page.value("quire:trace_spans_sent_total"), 1);
  EXPECT_EQ(page.value("quire:trace_spans_dropped_total", {{"reason", "no_room"}}), 2);
  EXPECT_EQ(page.value("quire:trace_spans_dropped_total", {{"reason", "not_sent"}}), 3);
  EXPECT_EQ(page.value("quire:trace_spans_dropped_total", {{"reason", "rejected"}}), 4);
}

TEST(Metrics, SpeculationHasSeriesWhereThereIsSomeAlone) {
  const auto num_of = [](const MetricsInfo& of) {
    const Exposition text(Metrics(of).render());
    return std::count_if(text.families().begin(), text.families().end(),
                         [](const auto& family) { return family.first.find("spec_decode") != std::string::npos; });
  };
  EXPECT_EQ(num_of(info()), 0);
  EXPECT_EQ(num_of(speculating(4)), 11);
}

TEST(Metrics, EverySeriesOfSpeculationShowsItsOwnField) {
  Metrics metrics(speculating(3));
  EXPECT_EQ(Exposition(metrics.render()).value("quire:spec_decode_estimated_speedup"), 1) << "before anybody drafted";
  metrics.spec_drafts.add(1);
  metrics.spec_draft_tokens.add(20);
  metrics.spec_accepted_tokens.add(3);
  metrics.spec_accepted_per_pos[0].add(4);
  metrics.spec_accepted_per_pos[2].add(5);
  metrics.spec_proposed_tokens.add(25);
  metrics.spec_step_nodes.observe(7);
  metrics.spec_budget_nodes.observe(8);
  metrics.spec_drafting_s.observe(0.5);
  metrics.spec_observing_s.observe(0.25);
  metrics.spec_estimated_speedup.set(1.75);
  metrics.spec_agreement.set(0.625);

  const Exposition text(metrics.render());
  EXPECT_EQ(text.value("vllm:spec_decode_num_drafts_total"), 1);
  EXPECT_EQ(text.value("vllm:spec_decode_num_draft_tokens_total"), 20);
  EXPECT_EQ(text.value("vllm:spec_decode_num_accepted_tokens_total"), 3);
  EXPECT_EQ(text.value("vllm:spec_decode_num_accepted_tokens_per_pos_total", {{"position", "0"}}), 4);
  EXPECT_EQ(text.value("vllm:spec_decode_num_accepted_tokens_per_pos_total", {{"position", "1"}}), 0);
  EXPECT_EQ(text.value("vllm:spec_decode_num_accepted_tokens_per_pos_total", {{"position", "2"}}), 5);
  EXPECT_EQ(text.value("quire:spec_decode_info", {{"method", "ngram"}, {"num_speculative_tokens", "3"}}), 1);
  EXPECT_EQ(text.value("quire:spec_decode_proposed_tokens_total"), 25);
  EXPECT_EQ(text.value("quire:spec_decode_step_nodes_sum"), 7);
  EXPECT_EQ(text.value("quire:spec_decode_budget_nodes_sum"), 8);
  EXPECT_EQ(text.value("quire:spec_decode_drafting_seconds_sum"), 0.5);
  EXPECT_EQ(text.value("quire:spec_decode_observing_seconds_sum"), 0.25);
  EXPECT_EQ(text.value("quire:spec_decode_estimated_speedup"), 1.75);
  EXPECT_EQ(text.value("quire:spec_decode_self_test_agreement"), 0.625);
}

TEST(Metrics, AgreementIsThereWhereItWasMeasuredAlone) {
  Metrics metrics(speculating(4));
  const auto reported = [&] {
    return Exposition(metrics.render()).families().contains("quire:spec_decode_self_test_agreement");
  };
  EXPECT_FALSE(reported());
  metrics.spec_agreement.set(0.0);  // measured, and none was right
  EXPECT_TRUE(reported());
}

TEST(Metrics, ReportsAsManyPositionsApartAsADraftIsDeep) {
  for (const std::uint32_t asked : {1u, 63u, 64u, 65u}) {
    const Exposition text(Metrics(speculating(asked)).render());
    EXPECT_EQ(text.families().at("vllm:spec_decode_num_accepted_tokens_per_pos_total").samples.size(),
              std::min(asked, 64u));
  }
}

TEST(Metrics, NamesTheCachesShapeAndTheBuild) {
  const Exposition text(Metrics(info()).render());
  EXPECT_EQ(text.value("vllm:cache_config_info", {{"block_size", "16"},
                                                  {"num_gpu_blocks", "128"},
                                                  {"num_cpu_blocks", "0"},
                                                  {"max_model_len", "2048"},
                                                  {"cache_dtype", "bf16"},
                                                  {"enable_prefix_caching", "True"},
                                                  {"prefix_caching_hash_algo", "none"},
                                                  {"gpu_memory_utilization", "None"},
                                                  {"kv_offloading_backend", "None"},
                                                  {"kv_offloading_size", "None"}}),
            1);
  EXPECT_EQ(text.value("quire:build_info", {{"version", "0.1.0"}, {"numeric_mode", "cpu-f32"}}), 1);
}

TEST(Metrics, WritesBoundsOfBucketsWithAPointAsDashboardsMatchThem) {
  const std::string text = Metrics(info("le=\"7\"")).render();
  EXPECT_NE(text.find("vllm:time_to_first_token_seconds_bucket{model_name=\"le=\\\"7\\\"\",engine=\"0\",le=\"1.0\"} 0"),
            std::string::npos)
      << text.substr(text.find("vllm:time_to_first_token_seconds_bucket"), 400);
  EXPECT_NE(text.find("le=\"0.25\""), std::string::npos);
  EXPECT_NE(text.find("le=\"+Inf\""), std::string::npos);
  EXPECT_EQ(text.find("le=\"1\""), std::string::npos);
}

// The rate of a counter that appears with its first error would not show that error.
TEST(Metrics, ErrorsOfAnEndpointBeginAtZeroWithItsFirstRequest) {
  MetricsInfo with_paths = info();
  with_paths.http_handlers = {"/a", "/b"};
  Metrics metrics(with_paths);
  metrics.http_requests.count("POST", "/a", 200, 0.5);
  const Exposition text(metrics.render());
  EXPECT_EQ(text.value("http_requests_total", {{"handler", "/a"}, {"method", "POST"}, {"status", "2xx"}}), 1);
  EXPECT_EQ(text.value("http_requests_total", {{"handler", "/a"}, {"method", "POST"}, {"status", "4xx"}}), 0);
  EXPECT_EQ(text.value("http_requests_total", {{"handler", "/a"}, {"method", "POST"}, {"status", "5xx"}}), 0);
  EXPECT_EQ(text.families().at("http_requests_total").samples.size(), 4u);
}

TEST(Metrics, EscapesALabelThatWouldBreakItsLine) {
  const std::string odd = "a\"b\\c\nd{e}=,";
  const Exposition text(Metrics(info(odd)).render());
  EXPECT_EQ(text.value("vllm:num_requests_running", {{"model_name", odd}}), 0);
}

TEST(Metrics, ReportsWhatTheProcessUses) {
  const Exposition text(Metrics(info()).render());
  EXPECT_GT(text.value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(text.value("process_cpu_seconds_total"), 0);
}

}  // namespace
}  // namespace quire::observe
