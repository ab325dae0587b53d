// POST /admin/cache/save, /admin/cache/load and /admin/cache/clear: saves the prefix cache to a file, loads it, or
// empties it. The engine does so between two steps.
// Shape   the body is {"path": NAME}, a plain file name in Services::cache_dir; of clear it is {} or empty. The answer
//         has the number of blocks that were written or read, or that clear emptied: the blocks without a holder.
// Owner   the session. The order is carried out even if its client leaves.
// Thread  as http::Answer says; the engine's result is posted to the io thread.
// Fails   kNotFound without a cache_dir (save, load); kInvalidArgument naming `path`; kUnavailable while another order
//         is under way; the engine's errors.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/services/services.h"
#include "api/wire/exchange.h"
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
  const Error* failure() const override { return finished() && !(*outcome_)->ok() ? &(*outcome_)->error() : nullptr; }
  http::Response whole() override;
  void fail(Error error) override;

 private:
  Result<std::string> file() const;

  const Services& services_;
  const bridge::ControlOrder::Kind kind_;
  std::string body_;
  Result<std::string> path_;  // of the file; empty for clear
  // The result of the order. Io thread only; shared with the order, which may outlive this object.
  std::shared_ptr<std::optional<Result<bridge::CacheReport>>> outcome_;
};

// The file name in a body such as {"path":"monday.kv"}, without a directory.
Result<std::string> cache_file_name(const std::string& body);
// Checks the body of an order without fields: it is empty, or {}.
Result<Done> check_no_fields(const std::string& body);

}  // namespace quire::api::admin
