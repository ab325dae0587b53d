#include "api/admin/metrics.h"

#include "api/admin/budget_metrics.h"
#include "api/json/response_writer.h"
#include "api/limits/key_metrics.h"

namespace quire::api::admin {

http::Response metrics(const Services& services) {
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = services.metrics.render();
  append_budget_metrics(response.body, services);
  if (services.keys != nullptr) keys::append_metrics(response.body, *services.keys->get());
  return response;
}

http::Response version(const Services& services) {
  http::Response response;
  JsonWriter(response.body).begin_object().key("version").text(services.version).end_object();
  return response;
}

}  // namespace quire::api::admin
