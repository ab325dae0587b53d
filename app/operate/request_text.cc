#include "app/operate/request_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/log.h"

namespace quire::app {
namespace {

namespace json = boost::json;

const json::value* member(const json::object& object, std::string_view name) { return object.if_contains(name); }

double number(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::uint64_t count(const json::object& object, std::string_view name) {
  const double value = number(object, name);
  constexpr double kMost = 9e15;  // doubles have all integers up to here
  return value > 0 ? static_cast<std::uint64_t>(std::min(value, kMost)) : 0;
}

std::string text(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value != nullptr && value->is_string() ? log_safe(std::string_view(value->get_string())) : std::string();
}

bool is_null(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value == nullptr || value->is_null();
}

std::vector<json::object> objects(const json::object& object, std::string_view name) {
  std::vector<json::object> out;
  const json::value* value = member(object, name);
  if (value == nullptr || !value->is_array()) return out;
  for (const json::value& one : value->get_array()) {
    if (one.is_object()) out.push_back(one.get_object());
  }
  return out;
}

// "0.8 ms", "1.52 s", "12 min 5 s".
std::string time_text(double ms) {
  constexpr double kSecond = 1000;
  constexpr double kMinute = 60 * kSecond;
  if (ms < kSecond) return fmt::format("{:.1f} ms", ms);
  if (ms < kMinute) return fmt::format("{:.2f} s", ms / kSecond);
  const auto seconds = static_cast<std::uint64_t>(ms / kSecond);
  return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

// "1 token", "2 tokens".
std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

// The first token is part of the prompt's time, so the rate counts the others.
std::string rate_text(std::uint64_t tokens, std::uint64_t first_tokens, double ms) {
  if (tokens <= first_tokens || ms <= 0) return "-";
  return fmt::format("{:.1f}", static_cast<double>(tokens - first_tokens) / ms * 1000);
}

// ---- the table

constexpr std::size_t kNumColumns = 9;
using Row = std::array<std::string, kNumColumns>;
constexpr std::array<bool, kNumColumns> kIsNumber = {false, false, false, false, true, true, true, true, true};

Row row_of(const json::object& request) {
  const std::uint64_t generated = count(request, "generated_tokens");
  const double since_first = number(request, "age_ms") - number(request, "first_token_ms");
  const std::string key = text(request, "api_key");
  return {text(request, "id"),
          text(request, "state"),
          key.empty() ? "-" : key,
          text(request, "model"),
          time_text(number(request, "age_ms")),
          fmt::format("{}", count(request, "prompt_tokens")),
          fmt::format("{}", count(request, "cached_tokens")),
          fmt::format("{}", generated),
          is_null(request, "first_token_ms") ? "-" : rate_text(generated, count(request, "sequences"), since_first)};
}

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, kNumColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kNumColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kNumColumns; ++i) {
      line += kIsNumber[i] ? fmt::format("{:>{}}", row[i], widths[i]) : fmt::format("{:<{}}", row[i], widths[i]);
      if (i + 1 < kNumColumns) line += "  ";
    }
    out += line + "\n";
  }
  return out;
}

// ---- a timeline

std::string cause_text(std::string_view cause) {
  if (cause == "places") return "as many sequences as --max-num-seqs allows were running";
  if (cause == "rows") return "the step had no room left (--max-num-batched-tokens)";
  if (cause == "blocks") return "too few blocks of the KV cache were free (--kv-cache-memory)";
  if (cause == "prefix") return "another sequence was computing the beginning of its prompt";
  return std::string(cause);
}

std::string prefill_text(const json::object& sequence) {
  const std::vector<json::object> chunks = objects(sequence, "prefill");
  std::uint64_t rows = 0;
  double took = 0;
  double longest = 0;
  for (const json::object& chunk : chunks) {
    rows += count(chunk, "rows");
    took += number(chunk, "ms");
    longest = std::max(longest, number(chunk, "ms"));
  }
  std::string out = fmt::format("prompt: {}, {} of them cached", counted(count(sequence, "prompt_tokens"), "token"),
                                count(sequence, "cached_tokens"));
  if (chunks.empty()) return out;
  out +=
      fmt::format("; {} computed in {}, {}", counted(rows, "token"), counted(chunks.size(), "step"), time_text(took));
  if (chunks.size() > 1) out += fmt::format(", the longest {}", time_text(longest));
  if (const std::uint64_t more = count(sequence, "prefill_not_kept"); more > 0) {
    out += fmt::format("; later {} are not kept", counted(more, "step"));
  }
  return out;
}

std::string tokens_text(const json::object& sequence) {
  const std::uint64_t generated = count(sequence, "generated_tokens");
  const json::value* times = member(sequence, "token_ms");
  if (generated == 0 || times == nullptr || !times->is_array() || times->get_array().empty()) return "no token yet";
  const json::array& kept = times->get_array();
  const auto at = [&kept](std::size_t i) { return kept[i].is_number() ? kept[i].to_number<double>() : 0.0; };
  std::string out = fmt::format("answer: {}, the first after {}", counted(generated, "token"), time_text(at(0)));
  if (kept.size() > 1) {
    out += fmt::format(", then {} tokens/s", rate_text(kept.size(), 1, at(kept.size() - 1) - at(0)));
    if (generated > kept.size()) out += fmt::format(" among the first {}", kept.size());
  }
  const json::value* gap = member(sequence, "longest_gap");
  if (gap != nullptr && gap->is_object()) {
    out += fmt::format("; longest gap {}, before token {}", time_text(number(gap->get_object(), "ms")),
                       count(gap->get_object(), "token") + 1);
  }
  return out;
}

std::string preemptions_text(const json::object& sequence) {
  const std::vector<json::object> kept = objects(sequence, "preemptions");
  if (kept.empty()) return {};
  std::string out = fmt::format("preempted {}", counted(kept.size() + count(sequence, "preemptions_not_kept"), "time"));
  for (const json::object& one : kept) {
    out += fmt::format("{}after {} ({})", &one == &kept.front() ? ": " : ", ", time_text(number(one, "at_ms")),
                       text(one, "kind"));
  }
  return out;
}

std::string sequence_text(const json::object& sequence) {
  std::string out;
  const auto line = [&out](const std::string& one) {
    if (!one.empty()) out += "  " + one + "\n";
  };
  const std::string cause = text(sequence, "queued_for");
  if (is_null(sequence, "queued_ms")) {
    line("still queued");
    return out;
  }
  line(fmt::format("queued: {}{}", time_text(number(sequence, "queued_ms")),
                   cause.empty() ? ", until the next step" : "; " + cause_text(cause)));
  line(prefill_text(sequence));
  line(preemptions_text(sequence));
  line(tokens_text(sequence));
  if (const std::uint64_t drafted = count(sequence, "drafted_tokens"); drafted > 0) {
    line(fmt::format("drafts: {} of {} accepted", count(sequence, "accepted_tokens"), counted(drafted, "token")));
  }
  if (!is_null(sequence, "ended_ms")) {
    line(fmt::format("ended after {}: {}", time_text(number(sequence, "ended_ms")), text(sequence, "end")));
  }
  return out;
}

}  // namespace

std::string request_table(const json::object& list) {
  std::vector<Row> rows = {{"ID", "STATE", "KEY", "MODEL", "AGE", "PROMPT", "CACHED", "OUT", "TOK/S"}};
  for (const json::object& request : objects(list, "data")) rows.push_back(row_of(request));
  if (rows.size() == 1) return "no requests are running or waiting\n";
  std::string out = aligned(rows);
  if (const std::uint64_t left_out = count(list, "left_out"); left_out > 0) {
    out += fmt::format("and {} that arrived later\n", counted(left_out, "request"));
  }
  return out;
}

std::string timeline_text(const json::object& timeline) {
  const std::vector<json::object> sequences = objects(timeline, "sequences");
  std::string out = fmt::format("request {}: {}\n", text(timeline, "id"), text(timeline, "state"));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences.size() > 1) out += fmt::format("sequence {} of {}:\n", i + 1, sequences.size());
    out += sequence_text(sequences[i]);
  }
  return out;
}

}  // namespace quire::app
