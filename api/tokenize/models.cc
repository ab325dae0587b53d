#include "api/tokenize/models.h"

#include <time.h>

#include <string>

#include "api/json/response_writer.h"
#include "api/wire/errors.h"
#include "api/wire/text.h"

namespace quire::api {
namespace {

// RFC 3339 text of a time: "2026-01-31T12:00:00Z".
std::string date_of(std::int64_t unix_seconds) {
  const time_t seconds = unix_seconds;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

void write_anthropics_model(JsonWriter& json, const Services& services, std::string_view name) {
  json.begin_object().key("type").text("model").key("id").text(name).key("display_name").text(name);
  json.key("created_at").text(date_of(services.created)).key("lifecycle").text("active");
  json.key("max_input_tokens").number(std::uint64_t{services.max_model_len});
  json.key("max_tokens").number(std::uint64_t{services.max_model_len}).end_object();
}

void write_model(JsonWriter& json, const Services& services, std::string_view name, ErrorShape shape) {
  if (shape == ErrorShape::kAnthropic) return write_anthropics_model(json, services, name);
  json.begin_object();
  json.key("id").text(name).key("object").text("model").key("created").number(services.created);
  json.key("owned_by").text("quire").key("root").text(services.model_names.front()).key("parent").null();
  json.key("max_model_len").number(std::uint64_t{services.max_model_len});
  json.end_object();
}

}  // namespace

http::Response list_models(const Services& services, ErrorShape shape) {
  const bool anthropics = shape == ErrorShape::kAnthropic;
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object();
  if (!anthropics) json.key("object").text("list");
  json.key("data").begin_array();
  for (const std::string& name : services.model_names.listed()) write_model(json, services, name, shape);
  json.end_array();
  if (anthropics) {
    json.key("has_more").boolean(false).key("first_id").text(services.model_names.front());
    json.key("last_id").text(services.model_names.listed().back());
  }
  json.end_object();
  return response;
}

http::Response show_model(const Services& services, std::string_view encoded_name, ErrorShape shape) {
  const std::string name = http::percent_decoded(encoded_name);
  if (!services.model_names.accepts(name)) {
    return error_response(
        Error{Code::kNotFound, "model_not_found: this model is not served; GET /v1/models lists the served models",
              "model", 0},
        shape);
  }
  http::Response response;
  JsonWriter json(response.body);
  write_model(json, services, name, shape);
  return response;
}

http::Response tokenizer_info(const Services& services) {
  if (services.tokenizer_info.empty()) {
    return error_response(
        Error{Code::kNotFound, "this endpoint is off: start the server with --tokenizer-info on", "", 0});
  }
  http::Response response;
  response.body = services.tokenizer_info;
  return response;
}

}  // namespace quire::api
