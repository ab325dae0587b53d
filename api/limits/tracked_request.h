// The entry of one request in the RequestBook, by which clients read its timeline (while it runs and for a while after)
// and cancel it.
// Shape   its key is the client's X-Request-Key, or 128 random bits; the answer's head returns it.
// Owner   the Answer. From enter() on the book lists the request as running, and as finished once this is destroyed.
// Thread  as http::Answer says; cancelled(): any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/limits/request_book.h"
#include "api/wire/exchange.h"
#include "api/wire/timings.h"

namespace quire::api::requests {

class TrackedRequest {
 public:
  // `book` outlives it.
  TrackedRequest(requests::RequestBook& book, const http::Request& request);
  ~TrackedRequest();
  TrackedRequest(const TrackedRequest&) = delete;
  TrackedRequest& operator=(const TrackedRequest&) = delete;

  // Called before enter(). add_sequence(): the stream of each sequence in order, of a beam search its first stream.
  // add_stream(): the other streams of a beam search.
  void add_sequence(const std::shared_ptr<bridge::TokenStream>& stream);
  void add_stream(const std::shared_ptr<bridge::TokenStream>& stream);
  // Called just before its sequences are admitted: from then on the book finds it by `id`, the answer's id without its
  // prefix.
  void enter(const std::string& id, RequestRecord::Asked asked = {});
  void withdraw();  // its sequences were not admitted

  // True if it was cancelled through the book: its sequences end with kCancelled, and its unfinished choices with
  // "abort".
  bool cancelled() const;

  std::vector<http::Field> fields() const;  // X-Request-Key, once entered
  void append_timings(std::string& json, const TokenCounts& counts) const;
  bool entered() const { return entered_; }
  const std::vector<std::shared_ptr<const bridge::Timeline>>& timelines() const { return record_->timelines; }

 private:
  requests::RequestBook& book_;
  const std::shared_ptr<requests::RequestRecord> record_;
  bool entered_ = false;
};

// True for a key that a client may choose as X-Request-Key, and for the empty one, which leaves the choice to the
// server.
bool is_request_key(std::string_view key);

}  // namespace quire::api::requests
