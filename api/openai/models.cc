#include "api/openai/models.h"

#include <algorithm>
#include <string>

#include "api/http/text.h"
#include "api/openai/errors.h"
#include "api/openai/response_writer.h"

namespace quire::api::openai {
namespace {

void write_model(JsonWriter& json, const Services& services, std::string_view name) {
  json.begin_object();
  json.key("id").text(name).key("object").text("model").key("created").number(services.created);
  json.key("owned_by").text("quire").key("root").text(services.model_names.front()).key("parent").null();
  json.key("max_model_len").number(std::uint64_t{services.max_model_len});
  json.end_object();
}

}  // namespace

http::Response list_models(const Services& services) {
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().key("object").text("list").key("data").begin_array();
  for (const std::string& name : services.model_names) write_model(json, services, name);
  json.end_array().end_object();
  return response;
}

http::Response show_model(const Services& services, std::string_view encoded_name) {
  const std::string name = http::percent_decoded(encoded_name);
  if (std::find(services.model_names.begin(), services.model_names.end(), name) == services.model_names.end()) {
    return error_response(Error{Code::kNotFound,
                                "model_not_found: this model is not served here; GET /v1/models lists those that are",
                                "model", 0});
  }
  http::Response response;
  JsonWriter json(response.body);
  write_model(json, services, name);
  return response;
}

}  // namespace quire::api::openai
