// quire ps and quire stop: the requests of a running server, the timeline of one, and its end.
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/operate/admin_client.h"
#include "app/operate/request_text.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

AdminClient client_of(const Config& config, const OperateOptions& options) {
  return AdminClient(
      options.url, {.key = config.api_key.empty() ? std::string() : config.api_key.front(), .ca_file = options.cacert});
}

}  // namespace

int ps(const Config& config, const OperateOptions& options) {
  const AdminClient client = client_of(config, options);
  if (options.id.empty()) {
    const boost::json::object list = client.list();
    fmt::print("{}", options.json ? boost::json::serialize(list) + "\n" : request_table(list));
    return 0;
  }
  const std::optional<boost::json::object> timeline = client.explain(options.id);
  if (!timeline) {
    fmt::print(stderr,
               "quire: the server has no request {}: `quire ps` lists those that run, and only the last "
               "finished ones are kept (--max-explained-requests)\n",
               log_safe(options.id));
    return 1;
  }
  fmt::print("{}", options.json ? boost::json::serialize(*timeline) + "\n" : timeline_text(*timeline));
  return 0;
}

int stop(const Config& config, const OperateOptions& options) {
  if (!client_of(config, options).stop(options.id)) {
    fmt::print(stderr, "quire: no request {} is running: `quire ps` lists those that are\n", log_safe(options.id));
    return 1;
  }
  fmt::print("stopped {}\n", log_safe(options.id));
  return 0;
}

}  // namespace quire::app
