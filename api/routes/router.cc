#include "api/routes/router.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "api/admin/cache_orders.h"
#include "api/admin/metrics.h"
#include "api/admin/request_list.h"
#include "api/admin/request_routes.h"
#include "api/chat/chat_formatter.h"
#include "api/chat/render_chat.h"
#include "api/completions/completion_formatter.h"
#include "api/completions/render_completion.h"
#include "api/embeddings/embedding_formatter.h"
#include "api/limits/gate.h"
#include "api/limits/tracked_request.h"
#include "api/messages/messages_formatter.h"
#include "api/openapi/openapi.h"
#include "api/responses/responses_formatter.h"
#include "api/routes/worked_answer.h"
#include "api/tokenize/models.h"
#include "api/tokenize/tokenize.h"
#include "api/wire/errors.h"
#include "api/wire/headers.h"
#include "api/wire/text.h"

namespace quire::api::http {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kRequestPrefix = "/v1/requests/";
constexpr std::string_view kAdminRequestPrefix = "/admin/requests/";
constexpr std::string_view kExplain = "/explain";
constexpr std::string_view kAdminPrefix = "/admin/";

struct Context {
  const Services& services;
  admin::Serving serving;
  TimePoint now;
  ErrorShape shape;
};

struct GetRoute {
  std::string_view path;
  Response (*handle)(const Context&);
  bool probe;
};

constexpr GetRoute kGets[] = {
    {"/live", [](const Context& c) { return admin::live(c.services, c.now); }, true},
    {"/ready", [](const Context& c) { return admin::ready(c.services, c.serving, c.now); }, true},
    {"/startup", [](const Context& c) { return admin::startup(c.services, c.serving, c.now); }, true},
    {"/health", [](const Context& c) { return admin::health(c.services, c.serving, c.now); }, true},
    {"/metrics", [](const Context& c) { return admin::metrics(c.services); }, true},
    {"/openapi.json", [](const Context& c) { return openapi(c.services); }, false},
    {"/version", [](const Context& c) { return admin::version(c.services); }, true},
    {"/ping", [](const Context& c) { return admin::ping(c.services, c.serving, c.now); }, true},
    {"/load", [](const Context& c) { return admin::load(c.services); }, true},
    {"/tokenizer_info", [](const Context& c) { return tokenizer_info(c.services); }, false},
    {"/v1/models", [](const Context& c) { return list_models(c.services, c.shape); }, false},
    {"/admin/requests", [](const Context& c) { return requests::list(c.services, c.now); }, false},
};

struct PostRoute {
  std::string_view path;
  bool generates;  // its sequences go through the waiting line
  std::unique_ptr<Answer> (*start)(const Services&, Request);
};

template <bridge::ControlOrder::Kind kind>
std::unique_ptr<Answer> order_cache(const Services& services, Request request) {
  return std::make_unique<admin::CacheOrder>(services, std::move(request), kind);
}

template <WorkerAnswer::Make make>
std::unique_ptr<Answer> work_out(const Services& services, Request request) {
  return std::make_unique<WorkerAnswer>(services, std::move(request), make);
}

constexpr PostRoute kPostRoutes[] = {
    {"/v1/completions", true,
     [](const Services& services, Request request) -> std::unique_ptr<Answer> {
       return complete(services, std::move(request));
     }},
    {"/v1/completions/render", false, work_out<render_completion>},
    {"/v1/embeddings", true,
     [](const Services& services, Request request) -> std::unique_ptr<Answer> {
       return embed(services, std::move(request));
     }},
    {"/tokenize", false, work_out<tokenize>},
    {"/detokenize", false, work_out<detokenize>},
    {"/v1/chat/completions", true,
     [](const Services& services, Request request) -> std::unique_ptr<Answer> {
       return chat::chat(services, std::move(request));
     }},
    {"/v1/chat/completions/render", false, work_out<chat::render>},
    {"/v1/responses", true,
     [](const Services& services, Request request) -> std::unique_ptr<Answer> {
       return responses::respond(services, std::move(request));
     }},
    {"/v1/messages", true,
     [](const Services& services, Request request) -> std::unique_ptr<Answer> {
       return messages::converse(services, std::move(request));
     }},
    {"/v1/messages/count_tokens", false, work_out<messages::count_tokens>},
    {"/admin/cache/save", false, order_cache<bridge::ControlOrder::Kind::kSaveCache>},
    {"/admin/cache/load", false, order_cache<bridge::ControlOrder::Kind::kLoadCache>},
    {"/admin/cache/clear", false, order_cache<bridge::ControlOrder::Kind::kClearCache>},
};

Response wrong_method(const char* allow, ErrorShape shape) {
  Response response =
      error_response(Error{Code::kMethodNotAllowed, std::string("this path allows only ") + allow, "", 0}, shape);
  response.fields.push_back({kAllowHeader, allow});
  return response;
}

std::string_view without_usual_port(std::string_view host, std::string_view port) {
  return host.ends_with(port) ? host.substr(0, host.size() - port.size()) : host;
}

bool is_this_machine(std::string_view host) {
  if (host.starts_with('[')) return host.starts_with("[::1]");
  host = host.substr(0, host.find(':'));
  return iequals(host, "localhost") || host.ends_with(".localhost") || host.starts_with("127.");
}

// Refuses admin orders of web pages of other origins, which a browser may send (CSRF). On a port that only this machine
// can reach, a Host that is not this machine is refused, too: a web page had its name resolve to us (DNS rebinding).
Result<Done> check_own_page(const Request& request) {
  const auto foreign = [](const char* what) {
    return Error{Code::kForbidden, std::string(what) + ": admin requests from other web pages are refused", "", 0};
  };
  if (iequals(request.fetch_site, "cross-site")) return foreign("Sec-Fetch-Site is cross-site");
  if (!request.origin.empty()) {
    const bool secure = request.origin.starts_with("https://");
    const std::string_view port = secure ? ":443" : ":80";
    const std::string_view scheme = secure ? "https://" : "http://";
    std::string_view origin = request.origin;
    const bool has_scheme = origin.starts_with(scheme);
    if (has_scheme) origin.remove_prefix(scheme.size());
    if (!has_scheme || !iequals(without_usual_port(origin, port), without_usual_port(request.host, port))) {
      return foreign("Origin differs from Host");
    }
  }
  if (request.at_loopback && !request.host.empty() && !is_this_machine(request.host)) {
    return foreign("Host is not this machine, and only this machine can reach this port");
  }
  return Done{};
}

// Requires application/json. An admin order with a body must declare it, because a web page of another origin can send
// a body without Content-Type; other requests may leave Content-Type out.
Result<Done> check_media(const Request& request, bool is_order) {
  const std::string_view type = trim(std::string_view(request.content_type).substr(0, request.content_type.find(';')));
  const bool says_nothing = type.empty() && (!is_order || !request.has_body());
  if (!says_nothing && !(is_order && !request.has_body()) && !iequals(type, "application/json")) {
    return Error{Code::kUnsupportedMedia, "the body must be application/json", "", 0};
  }
  if (!request.content_encoding.empty() && !iequals(request.content_encoding, "identity")) {
    return Error{Code::kUnsupportedMedia, "the body must be sent without Content-Encoding", "", 0};
  }
  return Done{};
}

// A path about one request: /v1/requests/{id}, /admin/requests/{id}, or one of them with /explain.
struct RequestPath {
  std::string_view id;
  bool of_operator = false;
  bool explains = false;
};

std::optional<RequestPath> request_path(std::string_view path) {
  const bool of_operator = path.starts_with(kAdminRequestPrefix);
  if (!of_operator && !path.starts_with(kRequestPrefix)) return std::nullopt;
  path.remove_prefix((of_operator ? kAdminRequestPrefix : kRequestPrefix).size());
  const bool explains = path.ends_with(kExplain);
  if (explains) path.remove_suffix(kExplain.size());
  return RequestPath{path, of_operator, explains};
}

Response about_request(const RequestPath& path, const Request& request, const Services& services) {
  if (path.of_operator) {
    return path.explains ? requests::explain_to_operator(services, path.id)
                         : requests::cancel_by_operator(services, path.id);
  }
  return path.explains ? requests::explain(services, path.id, request) : requests::cancel(services, path.id, request);
}

// SageMaker sends both GET /ping and POST /ping.
bool is_get(const Request& request) {
  return request.method == "GET" || request.method == "HEAD" || (request.path == "/ping" && request.method == "POST");
}

ErrorShape shape_of(const Request& request) { return http::shape_of(request.path, request.of_anthropics_client); }

// Methods of a path that is not in kPostRoutes; `right` is set if the request's method is one of them. Null: no such
// path.
const char* methods_of(std::string_view path, const Request& request, bool& right) {
  const bool gets = std::ranges::any_of(kGets, [&](const GetRoute& get) { return path == get.path; });
  const std::optional<RequestPath> named = request_path(path);
  if (named && !named->explains) {
    right = request.method == "DELETE";
    return "DELETE";
  }
  if (!gets && !path.starts_with(kModelPrefix) && !named) return nullptr;
  right = is_get(request);
  return "GET, HEAD";
}

// Rejects a POST before anything is parsed: shedding load must be far cheaper than serving.
Result<Done> check(const PostRoute& route, const Request& request, const Services& services, admin::Serving serving) {
  if (const auto why = admin::why_unavailable(services, serving, std::chrono::steady_clock::now())) {
    if (route.generates) services.metrics.admission_rejections.add();
    return *why;
  }
  const bridge::AdmissionQueue& queue = services.queue;
  if (route.generates && queue.waiting_sequences() >= queue.limits().max_sequences) {
    services.metrics.admission_rejections.add();
    return Error{Code::kQueueFull, "the waiting line is full; try again later", "", queue.retry_after_s()};
  }
  const bool orders = route.path.starts_with(kAdminPrefix);
  if (orders) {
    if (Result<Done> own = check_own_page(request); !own) return own.error();
  }
  if (Result<Done> media = check_media(request, orders); !media) return media.error();
  if (route.generates && !requests::is_request_key(request.key)) {
    return invalid(kRequestKeyHeader, "X-Request-Key must be 16 to 128 letters, digits and - _ . : or be left out");
  }
  return Done{};
}

// Error text for a path that only another port serves; null: this port serves the path, or none does.
const char* why_elsewhere(std::string_view path, Surface surface) {
  const bool order = path.starts_with(kAdminPrefix);
  if (surface == Surface::kClients && order) return "admin requests are served only on the admin port";
  if (surface == Surface::kAdmin && !order && !is_probe(path)) {
    return "no such path; the admin port has /live, /ready, /startup, /health, /metrics, /version, /admin/requests, "
           "/admin/requests/{id}, /admin/requests/{id}/explain, /admin/cache/save, /admin/cache/load and "
           "/admin/cache/clear";
  }
  return nullptr;
}

// Checks the API key before anything else, so that a client without a key learns nothing of paths. Returns the refusal;
// if there is none, request.caller is set, unless the server has no keys or the path needs none.
std::optional<Response> check_key(Request& request, const Services& services) {
  if (services.keys == nullptr || request.caller != nullptr) return std::nullopt;
  Result<std::shared_ptr<const keys::Caller>> caller = keys::caller_of(request, *services.keys->get());
  if (!caller) return error_response(caller.error(), shape_of(request));
  request.caller = std::move(*caller);
  request.authorization.clear();  // secrets are not needed after this
  request.api_key.clear();
  return std::nullopt;
}

}  // namespace

std::optional<Response> refusal_of_head(Request& request, const Services& services, admin::Serving serving,
                                        Surface surface) {
  if (std::optional<Response> refused = check_key(request, services)) return refused;
  const std::string_view path = request.path;
  const ErrorShape shape = shape_of(request);
  if (const char* elsewhere = why_elsewhere(path, surface)) {
    return error_response(Error{Code::kNotFound, elsewhere, "", 0});
  }
  for (const PostRoute& one : kPostRoutes) {
    if (path != one.path) continue;
    if (request.method != "POST") return wrong_method("POST", shape);
    const Result<Done> checked = check(one, request, services, serving);
    if (!checked) return error_response(checked.error(), shape);
    return std::nullopt;
  }
  bool right = false;
  if (const char* methods = methods_of(path, request, right)) {
    if (!right) return wrong_method(methods, shape);
    if (!path.starts_with(kAdminPrefix)) return std::nullopt;
    const Result<Done> own = check_own_page(request);
    return own ? std::nullopt : std::optional(error_response(own.error()));
  }
  return error_response(
      Error{Code::kNotFound,
            "no such path; this server has /v1/completions, /v1/chat/completions, /v1/responses, /v1/messages, "
            "/v1/messages/count_tokens, /v1/embeddings, /v1/models, "
            "/v1/completions/render, /v1/chat/completions/render, /v1/requests/{id}, /v1/requests/{id}/explain, "
            "/tokenize, /detokenize, /openapi.json, /version, "
            "/live, /ready, /startup, /health, /ping, /load, /metrics, /admin/requests, /admin/requests/{id}, "
            "/admin/requests/{id}/explain, /admin/cache/save, /admin/cache/load and /admin/cache/clear",
            "", 0},
      shape);
}

Reply route(Request request, const Services& services, admin::Serving serving, Surface surface) {
  if (std::optional<Response> refused = refusal_of_head(request, services, serving, surface)) {
    return std::move(*refused);
  }
  const std::string_view path = request.path;
  const Context context{services, serving, std::chrono::steady_clock::now(), shape_of(request)};
  for (const GetRoute& get : kGets) {
    if (path == get.path) return get.handle(context);
  }
  if (path.starts_with(kModelPrefix)) {
    return show_model(services, path.substr(kModelPrefix.size()), context.shape);
  }
  if (const auto named = request_path(path)) return about_request(*named, request, services);
  const auto at = std::ranges::find(kPostRoutes, path, &PostRoute::path);
  return at->start(services, std::move(request));
}

ErrorShape shape_of(std::string_view path, bool of_anthropics_client) {
  constexpr std::string_view kMessages = "/v1/messages";
  constexpr std::string_view kModels = "/v1/models";
  const auto below = [path](std::string_view root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
  };
  const bool anthropics = below(kMessages) || (of_anthropics_client && below(kModels));
  return anthropics ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

std::string_view route_of(std::string_view path) {
  for (const GetRoute& get : kGets) {
    if (path == get.path) return get.path;
  }
  for (const PostRoute& one : kPostRoutes) {
    if (path == one.path) return one.path;
  }
  if (path.starts_with(kModelPrefix)) return "/v1/models/{model}";
  const std::optional<RequestPath> named = request_path(path);
  if (!named) return {};
  if (named->of_operator) return named->explains ? "/admin/requests/{id}/explain" : "/admin/requests/{id}";
  return named->explains ? "/v1/requests/{id}/explain" : "/v1/requests/{id}";
}

std::vector<std::string> routes() {
  std::vector<std::string> all = {"/v1/models/{model}", "/v1/requests/{id}", "/v1/requests/{id}/explain",
                                  "/admin/requests/{id}", "/admin/requests/{id}/explain"};
  for (const GetRoute& get : kGets) {
    if (!get.probe) all.emplace_back(get.path);
  }
  for (const PostRoute& one : kPostRoutes) all.emplace_back(one.path);
  return all;
}

bool is_probe(std::string_view path) {
  for (const GetRoute& get : kGets) {
    if (path == get.path) return get.probe;
  }
  return false;
}

}  // namespace quire::api::http
