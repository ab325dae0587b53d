// POST /admin/cache/save and /admin/cache/load: the prefix cache to a file and back, by the engine, between two steps.
// Shape   the body is {"path": NAME}: a plain file name in Services::cache_dir. The answer tells what moved.
// Owner   the session. A client that leaves changes nothing: the order is carried out all the same.
// Thread  as http::Answer says; the engine's word is posted to the io thread.
// Fails   kNotFound without a cache_dir; kInvalidArgument naming `path`; kUnavailable while another order is under way;
//         what the engine says.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/http/exchange.h"
#include "api/services.h"
#include "core/bridge/control_queue.h"

namespace quire::api::admin {

class CacheOrder final : public http::Answer {
 public:
  CacheOrder(const Services& services, http::Request request, bridge::ControlOrder::Kind kind);

  std::size_t work_bytes() const override { return body_.size(); }
  std::optional<Lane> work() override;
  std::optional<http::Response> admit(const http::IoDoor& door) override;
  bool streams() const override { return false; }
  std::string take_events() override { return {}; }
  bool finished() const override { return outcome_->has_value(); }
  bool failed() const override { return finished() && !(*outcome_)->ok(); }
  http::Response whole() override;
  void fail(Error error) override;
  http::Tally tally() const override { return {}; }

 private:
  const Services& services_;
  const bridge::ControlOrder::Kind kind_;
  std::string body_;
  Result<std::string> path_;
  // What became of it. Io thread only; held by the order, too, which may outlive us.
  std::shared_ptr<std::optional<Result<bridge::CacheReport>>> outcome_;
};

// The file named by a body like {"path":"monday.kv"}, as a name without a directory.
Result<std::string> cache_file_name(const std::string& body);

}  // namespace quire::api::admin
