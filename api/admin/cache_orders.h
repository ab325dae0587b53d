// POST /admin/cache/save, /admin/cache/load and /admin/cache/clear: the prefix cache to a file, back, or forgotten, by
// the engine, between two steps.
// Shape   the body is {"path": NAME}: a plain file name in Services::cache_dir; to clear, {} or nothing. The answer
//         tells what moved, or how many blocks were emptied: those that nobody held.
// Owner   the session. A client that leaves changes nothing: the order is carried out all the same.
// Thread  as http::Answer says; the engine's word is posted to the io thread.
// Fails   kNotFound without a cache_dir, where there is a file; kInvalidArgument naming `path`; kUnavailable while
//         another order is under way; what the engine says.
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
  std::optional<Lane> work(Lane lane, Allowance& allowance) override;
  std::optional<http::Response> admit(const http::IoHandle& io_handle) override;
  bool streams() const override { return false; }
  http::Taken take() override { return {}; }
  std::string events() override { return {}; }
  bool finished() const override { return outcome_->has_value(); }
  bool failed() const override { return finished() && !(*outcome_)->ok(); }
  http::Response whole() override;
  void fail(Error error) override;
  http::Tally tally() const override { return {}; }

 private:
  Result<std::string> file() const;

  const Services& services_;
  const bridge::ControlOrder::Kind kind_;
  std::string body_;
  Result<std::string> path_;  // of the file; empty to clear
  // What became of it. Io thread only; held by the order, too, which may outlive us.
  std::shared_ptr<std::optional<Result<bridge::CacheReport>>> outcome_;
};

// The file named by a body like {"path":"monday.kv"}, as a name without a directory.
Result<std::string> cache_file_name(const std::string& body);
// Of an order that has nothing to say: the body is empty, or {}.
Result<Done> check_no_fields(const std::string& body);

}  // namespace quire::api::admin
