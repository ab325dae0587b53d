#include "api/admin/request_routes.h"

#include <optional>
#include <string>
#include <vector>

#include "api/json/response_writer.h"
#include "api/limits/request_book.h"
#include "api/wire/errors.h"
#include "api/wire/text.h"

namespace quire::api::requests {
namespace {

using bridge::Timeline;

std::string key_of(const http::Request& request) {
  if (!request.key.empty() || request.caller) return request.key;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.authorization;
  if (!http::iequals(given.substr(0, kScheme.size()), kScheme)) return {};
  return std::string(http::trim(given.substr(kScheme.size())));
}

RequestBook::Asker asker_of(const http::Request& request) {
  if (!request.caller) return {};
  return {request.caller->name, request.caller->role == keys::Role::kAdmin};
}

// The ids under which the book may have `id`: itself, and the part behind a prefix of an answer's id.
std::vector<std::string> ids_of(std::string_view id) {
  std::vector<std::string> ids = {http::percent_decoded(id)};
  std::size_t letters = 0;
  while (letters < ids[0].size() && http::is_alpha(ids[0][letters])) ++letters;
  if (letters > 0 && letters < ids[0].size() && (ids[0][letters] == '-' || ids[0][letters] == '_')) {
    ids.push_back(ids[0].substr(letters + 1));
  }
  return ids;
}

constexpr const char* kUnknown = "no such request, or its key differs: send the X-Request-Key header of its answer";
constexpr const char* kUnknownToOperator = "no such request: GET /admin/requests lists those that run";
constexpr RequestBook::Asker kOperator{.sees_all = true};

http::Response unknown(const char* why) { return error_response(Error{Code::kNotFound, why, "", 0}); }

double ms(Timeline::Micros micros) { return micros / 1000.0; }

const char* name_of(Timeline::End end) {
  switch (end) {
    case Timeline::End::kNone:
      return nullptr;
    case Timeline::End::kStop:
      return "stop";
    case Timeline::End::kLength:
      return "length";
    case Timeline::End::kAborted:
      return "abort";
    case Timeline::End::kLate:
      return "deadline";
    case Timeline::End::kFailed:
      return "error";
  }
  return nullptr;
}

// Writes the kept entries of a list, and the number of entries that were not kept.
template <typename List, typename Write>
void write_list(JsonWriter& json, std::string_view name, const List& list, Write write) {
  const std::uint32_t num = list.num();
  json.key(name).begin_array();
  for (const auto& entry : list.kept()) write(entry);
  json.end_array().key(std::string(name) + "_not_kept");
  json.number(std::uint64_t{num - std::min(num, std::remove_reference_t<List>::kCapacity)});
}

void write_sequence(JsonWriter& json, const Timeline& sequence) {
  const Timeline::End end = sequence.end();
  const std::optional<Timeline::Micros> start = sequence.start();
  json.begin_object();
  json.key("state").text(end != Timeline::End::kNone ? "ended" : start ? "running" : "queued");
  json.key("prompt_tokens").number(std::uint64_t{sequence.prompt_tokens()});
  json.key("cached_tokens").number(std::uint64_t{start ? sequence.cached_tokens() : 0});
  json.key("queued_ms");
  start ? json.number(ms(*start)) : json.null();
  const char* const waited_for = start ? flow::name_of(sequence.waited_for()) : nullptr;
  json.key("queued_for");
  waited_for != nullptr ? json.text(waited_for) : json.null();
  write_list(json, "prefill", sequence.chunks(), [&json](const Timeline::Chunk& chunk) {
    json.begin_object().key("at_ms").number(ms(chunk.at)).key("ms").number(ms(chunk.took));
    json.key("rows").number(std::uint64_t{chunk.rows}).end_object();
  });
  write_list(json, "preemptions", sequence.preemptions(), [&json](const Timeline::Preemption& one) {
    json.begin_object().key("at_ms").number(ms(one.at));
    json.key("kind").text(one.swapped ? "swap" : "recompute").end_object();
  });
  json.key("drafted_tokens").number(std::uint64_t{sequence.num_drafted()});
  json.key("accepted_tokens").number(std::uint64_t{sequence.num_accepted()});
  write_list(json, "drafts", sequence.drafts(), [&json](const Timeline::Draft& draft) {
    json.begin_object().key("drafted").number(std::uint64_t{draft.drafted});
    json.key("accepted").number(std::uint64_t{draft.accepted}).end_object();
  });
  json.key("generated_tokens").number(std::uint64_t{sequence.tokens().num()});
  write_list(json, "token_ms", sequence.tokens(), [&json](Timeline::Micros at) { json.number(ms(at)); });
  json.key("longest_gap");
  if (const auto gap = sequence.longest_gap()) {
    json.begin_object().key("token").number(std::uint64_t{gap->token}).key("ms").number(ms(gap->length)).end_object();
  } else {
    json.null();
  }
  const char* const reason = name_of(end);
  json.key("ended_ms");
  reason != nullptr ? json.number(ms(sequence.ended())) : json.null();
  json.key("end");
  reason != nullptr ? json.text(reason) : json.null();
  json.end_object();
}

http::Response explanation(const Services& services, std::string_view id, const std::string& key,
                           const RequestBook::Asker& asker, const char* why_unknown) {
  for (const std::string& one : ids_of(id)) {
    const auto found = services.requests.find(one, key, asker);
    if (!found) continue;
    http::Response response;
    JsonWriter json(response.body);
    json.begin_object().key("object").text("request_timeline").key("id").text(found->record->id);
    json.key("state").text(found->running ? "running" : "finished").key("sequences").begin_array();
    for (const auto& sequence : found->record->timelines) write_sequence(json, *sequence);
    json.end_array().end_object();
    return response;
  }
  return unknown(why_unknown);
}

http::Response cancellation(const Services& services, std::string_view id, const std::string& key,
                            const RequestBook::Asker& asker, const char* why_unknown) {
  for (const std::string& one : ids_of(id)) {
    if (!services.requests.cancel(one, key, asker)) continue;
    http::Response response;
    JsonWriter(response.body).begin_object().key("id").text(one).key("cancelled").boolean(true).end_object();
    return response;
  }
  return unknown(why_unknown);
}

}  // namespace

http::Response explain(const Services& services, std::string_view id, const http::Request& request) {
  return explanation(services, id, key_of(request), asker_of(request), kUnknown);
}

http::Response cancel(const Services& services, std::string_view id, const http::Request& request) {
  return cancellation(services, id, key_of(request), asker_of(request), kUnknown);
}

http::Response explain_to_operator(const Services& services, std::string_view id) {
  return explanation(services, id, {}, kOperator, kUnknownToOperator);
}

http::Response cancel_by_operator(const Services& services, std::string_view id) {
  return cancellation(services, id, {}, kOperator, kUnknownToOperator);
}

}  // namespace quire::api::requests
