// One request that others may ask about by its name while it runs and for a while after: what became of it, and to end
// it.
// Shape   its key is the client's X-Request-Key, or 128 random bits; the answer's head tells it.
// Owner   the Answer. While it is entered the book knows the request as running, and as finished once this goes.
// Thread  as http::Answer says; cancelled(): any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/http/exchange.h"
#include "api/requests/timings.h"
#include "core/bridge/request_book.h"

namespace quire::api::requests {

class TrackedRequest {
 public:
  // `book` outlives it.
  TrackedRequest(bridge::RequestBook& book, const http::Request& request);
  ~TrackedRequest();
  TrackedRequest(const TrackedRequest&) = delete;
  TrackedRequest& operator=(const TrackedRequest&) = delete;

  // Before enter(): each sequence's stream, in their order (of a search: its first), and a search's other ones.
  void add_sequence(const std::shared_ptr<bridge::TokenStream>& stream);
  void add_stream(const std::shared_ptr<bridge::TokenStream>& stream);
  // Its sequences are about to be admitted: from now on it can be found by the id that its answer's is made of.
  void enter(const std::string& id);
  void withdraw();  // they were not

  // Somebody who knows the key has ended it: its sequences end with kCancelled, and its open choices with "abort".
  bool cancelled() const;

  std::vector<http::Field> fields() const;  // the key, once entered
  void append_timings(std::string& json, const TokenCounts& counts) const;
  bool entered() const { return entered_; }
  const std::vector<std::shared_ptr<const bridge::Timeline>>& timelines() const { return record_->timelines; }

 private:
  bridge::RequestBook& book_;
  const std::shared_ptr<bridge::RequestRecord> record_;
  bool entered_ = false;
};

// What a client may choose as X-Request-Key; empty: it leaves that to us.
bool is_request_key(std::string_view key);

}  // namespace quire::api::requests
