#include "api/openapi/openapi.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "api/json/response_writer.h"
#include "api/openapi/field_schema.h"
#include "api/openapi/operation_writer.h"
#include "api/openapi/operations.h"
#include "api/openapi/type_schema.h"
#include "api/wire/headers.h"

namespace quire::api {
namespace {

void write_about(JsonWriter& json, const Services& services) {
  json.key("openapi").text("3.1.0").key("info").begin_object().key("title").text("quire");
  json.key("version").text(services.version).key("description");
  json.text("An inference server for language models with OpenAI's and Anthropic's APIs.").end_object();
  json.key("servers").begin_array().begin_object().key("url").text("/").end_object().end_array();
  json.key("tags").begin_array();
  for (const Tag& tag : tags()) {
    json.begin_object().key("name").text(tag.name).key("description").text(tag.help).end_object();
  }
  json.end_array();
}

void write_paths(JsonWriter& json, const Services& services) {
  json.key("paths").begin_object();
  std::string_view open;
  for (const Operation& operation : operations()) {
    if (operation.path != open) {
      if (!open.empty()) json.end_object();
      open = operation.path;
      json.key(open).begin_object();
    }
    write_operation(json.key(operation.method), operation, services);
  }
  json.end_object().end_object();
}

void write_schemas(JsonWriter& json, const RequestLimits& limits) {
  json.key("schemas").begin_object();
  for (const Body& body : bodies()) {
    const auto num_required =
        body.required.size() - static_cast<std::size_t>(std::ranges::count(body.required, std::string_view()));
    const auto required = std::span<const std::string_view>(body.required).first(num_required);
    write_body_schema(json.key(body.name), body.endpoint, body.own(), required, limits);
  }
  for (const std::span<const Shape> group : all_shapes()) {
    for (const Shape& shape : group) write_shape(json.key(shape.name), shape);
  }
  json.end_object();
}

void write_security_schemes(JsonWriter& json) {
  json.key("securitySchemes").begin_object().key("bearer").begin_object();
  json.key("type").text("http").key("scheme").text("bearer").end_object().key("key").begin_object();
  json.key("type").text("apiKey").key("in").text("header").key("name").text(http::kApiKeyHeader);
  json.end_object().end_object();
}

// Without API keys there is one, empty requirement: no authentication is needed.
void write_security(JsonWriter& json, bool has_keys) {
  json.key("security").begin_array().begin_object();
  if (has_keys) {
    json.key("bearer").begin_array().end_array().end_object().begin_object().key("key").begin_array().end_array();
  }
  json.end_object().end_array();
}

}  // namespace

http::Response openapi(const Services& services) {
  const bool has_keys = services.keys != nullptr;
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object();
  write_about(json, services);
  write_paths(json, services);
  json.key("components").begin_object();
  write_schemas(json, services.limits);
  write_answer_headers(json.key("headers"));
  if (has_keys) write_security_schemes(json);
  json.end_object();
  write_security(json, has_keys);
  json.end_object();
  return response;
}

}  // namespace quire::api
