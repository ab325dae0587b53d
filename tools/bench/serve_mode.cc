// quire bench --mode serve: the whole engine as in serving, on its own thread behind the admission queue, with streams
// read by this thread; without HTTP, JSON and detokenizing. Each stream sends its next request after its answer.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <memory>
#include <vector>

#include "app/instance/instance.h"
#include "app/model/machine.h"
#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/bridge/stream_hub.h"
#include "core/bridge/token_stream.h"
#include "tools/bench/bench.h"
#include "tools/bench/load.h"
#include "tools/common/progress.h"

namespace quire::tools {
namespace {

class Load {
 public:
  Load(app::Instance& instance, const BenchOptions& options, std::uint32_t most_streams)
      : instance_(instance),
        options_(options),
        hub_(std::make_shared<bridge::StreamHub>(
            most_streams, [this] { pending_.ring(); }, instance.doorbell())) {}

  Measurement measure(std::uint32_t streams, std::uint64_t round) {
    Measurement out;
    const std::uint32_t total = num_requests(options_, streams);
    out.answers.resize(total);
    clients_.assign(total, {});
    round_ = round;
    const TimePoint start = clock_.now();
    std::uint32_t sent = 0;
    for (num_ended_ = 0; num_ended_ < total;) {
      while (sent < total && sent - num_ended_ < streams) {
        send(sent, out.answers[sent]);
        ++sent;
      }
      pending_.wait_until(TimePoint::max());
      hub_->drain();
      for (std::uint32_t i = 0; i < sent; ++i) {
        if (clients_[i].ended) clients_[i].stream.reset();  // not inside its own callback
      }
    }
    out.wall_s = std::chrono::duration<double>(clock_.now() - start).count();
    return out;
  }

 private:
  struct Client {
    std::shared_ptr<bridge::TokenStream> stream;
    TimePoint last{};  // time of the request, or of the newest token
    bool ended = false;
  };

  void send(std::uint32_t index, Answer& answer) {
    Client& client = clients_[index];
    client.stream = hub_->open([this, &client, &answer] { read(client, answer); });
    CHECK(client.stream != nullptr);
    std::vector<bridge::Submission> submissions(1);
    flow::Request& request = submissions.front().request;
    request.prompt =
        load_prompt({options_.prompt_tokens, options_.shared_tokens, instance_.model().vocab}, round_, index);
    request.max_tokens = options_.answer_tokens;
    request.sampling.temperature = 0;
    request.cache_namespace = CacheNamespace{1, 1};
    request.arrival = client.last = clock_.now();
    submissions.front().stream = client.stream;
    if (const Result<Done> admitted = instance_.queue().admit(submissions); !admitted) {
      throw StartError("bench --mode serve: " + admitted.error().message);
    }
  }

  void read(Client& client, Answer& answer) {
    while (!client.ended) {
      const std::optional<flow::TokenEvent> event = client.stream->pop();
      if (!event) return;
      const TimePoint now = clock_.now();
      if (flow::has_token(event->finish)) {
        const double seconds = std::chrono::duration<double>(now - client.last).count();
        if (answer.tokens++ == 0) {
          answer.ttft_s = seconds;
        } else {
          answer.gaps_s.push_back(seconds);
        }
        client.last = now;
      }
      if (event->finish == flow::Finish::kNone) continue;
      client.ended = true;
      ++num_ended_;
      const bool all = event->finish == flow::Finish::kLength && answer.tokens == options_.answer_tokens;
      answer.verdict = all                                      ? Answer::Verdict::kGood
                       : event->finish == flow::Finish::kFailed ? Answer::Verdict::kFailed
                                                                : Answer::Verdict::kWrong;
    }
  }

  app::Instance& instance_;
  const BenchOptions& options_;
  SteadyClock clock_;
  bridge::Doorbell pending_;  // rung by the engine thread
  std::shared_ptr<bridge::StreamHub> hub_;
  std::vector<Client> clients_;
  std::uint64_t round_ = 0;
  std::uint32_t num_ended_ = 0;
};

void print_text(const std::vector<std::uint32_t>& streams, const std::vector<LoadFigures>& all) {
  fmt::print("{:>8} {:>10} {:>14} {:>14} {:>13} {:>13} {:>9} {:>7} {:>6}\n", "streams", "tokens/s", "TTFT p50, ms",
             "TTFT p99, ms", "gap p50, ms", "gap p99, ms", "requests", "failed", "wrong");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const LoadFigures& one = all[i];
    fmt::print("{:>8} {:>10.1f} {:>14.2f} {:>14.2f} {:>13.3f} {:>13.3f} {:>9} {:>7} {:>6}\n", streams[i],
               one.tokens_per_s, 1e3 * one.ttft_p50_s, 1e3 * one.ttft_p99_s, 1e3 * one.gap_p50_s, 1e3 * one.gap_p99_s,
               one.requests, one.failed, one.wrong);
  }
}

}  // namespace

int bench_serve(const Config& given, const BenchOptions& options) {
  const std::uint32_t most = *std::max_element(options.streams.begin(), options.streams.end());
  const std::uint32_t length = options.prompt_tokens + options.answer_tokens;
  Config config = given;
  config.max_num_seqs = most;
  config.max_num_batched_tokens = std::max(config.max_num_batched_tokens, most);
  config.max_queue = std::max(config.max_queue, most);
  config.max_model_len = length;
  config.pin_prefix.clear();

  const Progress progress("bench --mode serve");
  progress.say("packing the weights");
  BenchSource from = bench_source(config, options);
  if (const std::uint32_t longest = model::load_config(*from.source.files).max_model_len(); longest < length) {
    throw StartError(
        fmt::format("--prompt-tokens {} and --answer-tokens {}: the maximum of this model is {} tokens together",
                    options.prompt_tokens, options.answer_tokens, longest));
  }
  app::Instance instance(config, std::move(from.source));
  const MachineFigures machine = measure_machine(config, options.runs);
  instance.start(nullptr);
  std::vector<LoadFigures> medians;
  {
    Load load(instance, options, most);
    std::uint64_t round = 0;
    load.measure(most, round++);  // warm-up of pages and caches
    for (const std::uint32_t streams : options.streams) {
      std::vector<LoadFigures> figures;
      for (std::uint32_t run = 0; run < options.runs; ++run) {
        progress.say(fmt::format("{} streams, run {} of {}", streams, run + 1, options.runs));
        figures.push_back(figures_of(load.measure(streams, round++), options.shared_tokens > 0));
      }
      medians.push_back(median_of(figures));
    }
  }
  instance.stop();

  if (options.json) {
    boost::json::array rows;
    for (std::size_t i = 0; i < medians.size(); ++i) {
      boost::json::object row = json_of(medians[i]);
      row["streams"] = options.streams[i];
      rows.push_back(std::move(row));
    }
    boost::json::object out = {{"mode", "serve"},
                               {"model", instance.description().front()},
                               {"runs", options.runs},
                               {"prompt_tokens", options.prompt_tokens},
                               {"shared_tokens", options.shared_tokens},
                               {"answer_tokens", options.answer_tokens}};
    add_machine(machine, out);
    out["rows"] = std::move(rows);
    print_json(out);
  } else {
    fmt::print("{}\n{}; medians of {} runs; prompts of {} tokens, answers of {}\n{}\n\n",
               instance.description().front(), app::cpu_name(), options.runs, options.prompt_tokens,
               options.answer_tokens, machine_line(machine));
    print_text(options.streams, medians);
  }
  const bool all_good = std::ranges::all_of(medians, [](const auto& one) { return one.failed + one.wrong == 0; });
  return all_good ? 0 : 1;
}

}  // namespace quire::tools
