#include "tools/bench/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string_view>

#include "core/base/log.h"

namespace quire::tools {
namespace {

constexpr unsigned kAnswered = 200;
constexpr std::size_t kShownBytes = 200;  // of a server's error, in messages

class Reader {
 public:
  explicit Reader(const Transcript& transcript) : transcript_(transcript) {}

  // Parses all events. Lines end with LF or CRLF.
  void read() {
    const std::string_view body = transcript_.body;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = std::min(body.find('\n', at), body.size());
      std::string_view line = body.substr(at, end - at);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.starts_with("data:")) {
        line.remove_prefix(5);
        if (line.starts_with(' ')) line.remove_prefix(1);
        event(line, end);
      }
      at = end + 1;
    }
  }

  std::string text;
  std::string finish;
  std::string bad;  // an invalid event
  std::vector<double> token_times;
  std::optional<std::uint32_t> counted;  // usage, as the server counted
  bool done = false;

 private:
  void event(std::string_view data, std::size_t end) {
    if (data == "[DONE]") {
      done = true;
      return;
    }
    boost::json::error_code error;
    const boost::json::value parsed = boost::json::parse(data, error);
    if (error || !parsed.is_object() || parsed.as_object().contains("error")) {
      bad = data;
      return;
    }
    const boost::json::object& object = parsed.as_object();
    if (const boost::json::value* choices = object.if_contains("choices"); choices != nullptr && choices->is_array()) {
      for (const boost::json::value& one : choices->as_array()) choice(one, end);
    }
    const boost::json::value* usage = object.if_contains("usage");
    if (usage == nullptr || !usage->is_object()) return;
    const boost::json::value* tokens = usage->as_object().if_contains("completion_tokens");
    boost::json::error_code not_a_number;
    if (tokens != nullptr) {
      const auto count = tokens->to_number<std::uint32_t>(not_a_number);
      if (!not_a_number) counted = count;
    }
  }

  // An event with only a finish reason is not a token. An event without text may be one: a part of a character.
  void choice(const boost::json::value& value, std::size_t end) {
    if (!value.is_object()) return;
    const boost::json::object& one = value.as_object();
    const boost::json::value* words = one.if_contains("text");
    const boost::json::value* reason = one.if_contains("finish_reason");
    const bool says = words != nullptr && words->is_string() && !words->as_string().empty();
    const bool ends = reason != nullptr && reason->is_string();
    if (says) text += std::string_view(words->as_string());
    if (ends) finish = std::string_view(reason->as_string());
    if (says || !ends) token_times.push_back(time_of(end));
  }

  // Time at which the bytes [0, end) were complete.
  double time_of(std::size_t end) {
    while (read_ + 1 < transcript_.reads.size() && transcript_.reads[read_].first < end) ++read_;
    return transcript_.reads.empty() ? transcript_.sent_s : transcript_.reads[read_].second;
  }

  const Transcript& transcript_;
  std::size_t read_ = 0;  // index into reads; only grows, as events are in order
};

Answer bad_answer(Answer::Verdict verdict, std::string why) {
  Answer answer;
  answer.verdict = verdict;
  answer.why = std::move(why);
  return answer;
}

}  // namespace

Answer read_answer(const Transcript& transcript, std::uint32_t tokens) {
  using enum Answer::Verdict;
  if (!transcript.error.empty()) return bad_answer(kFailed, transcript.error);
  if (transcript.code != kAnswered) {
    return bad_answer(kFailed, fmt::format("answered {}: {}", transcript.code,
                                           log_safe(std::string_view(transcript.body).substr(0, kShownBytes))));
  }
  Reader reader(transcript);
  reader.read();
  if (!reader.bad.empty()) {
    return bad_answer(
        kWrong, "an invalid event: " + std::string(log_safe(std::string_view(reader.bad).substr(0, kShownBytes))));
  }
  if (!reader.done) return bad_answer(kWrong, "no [DONE] at the end");
  Answer answer;
  answer.tokens = reader.counted.value_or(static_cast<std::uint32_t>(reader.token_times.size()));
  answer.text = std::move(reader.text);
  if (reader.token_times.empty()) return bad_answer(kWrong, "no token in the answer");
  if (answer.tokens != tokens || reader.finish != "length") {
    return bad_answer(
        kWrong, fmt::format("{} tokens instead of {}, ended by '{}'", answer.tokens, tokens, log_safe(reader.finish)));
  }
  answer.verdict = kGood;
  answer.ttft_s = reader.token_times.front() - transcript.sent_s;
  for (std::size_t i = 1; i < reader.token_times.size(); ++i) {
    answer.gaps_s.push_back(reader.token_times[i] - reader.token_times[i - 1]);
  }
  return answer;
}

}  // namespace quire::tools
