// The part of a session that waits for events and watches its client meanwhile.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "api/http/session.h"

namespace quire::api::http {

namespace asio = boost::asio;
using boost::system::error_code;

void Session::wake() {
  awake_ = true;
  events_timer_.cancel();
}

void Session::take_events() {
  if (pending_since_ == TimePoint{}) pending_since_ = io_.hub->pending_since();
  wake();
}

Session::Task<void> Session::wait_until(TimePoint until) {
  if (!awake_) {
    events_timer_.expires_at(until);
    co_await events_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  awake_ = false;
}

// Waits for the end of the client's data, a reset, or its next request. A wait that was begun during an earlier request
// serves this one, too, so that pipelined requests do not add waits.
void Session::watch() {
  const bool room = !read_closed_ && buffer_.size() < buffer_.max_size();
  bool& awaits = room ? awaits_readable_ : awaits_broken_;
  if (awaits) return;
  awaits = true;
  auto then = [weak = weak_from_this(), room](error_code error) {
    const auto self = weak.lock();
    if (!self) return;
    (room ? self->awaits_readable_ : self->awaits_broken_) = false;
    if (self->closed_ || !self->watched_ || error == asio::error::operation_aborted) return;
    if (error || !room) {
      self->gone_ = true;
      return self->wake();
    }
    self->on_readable();
  };
  if (room) {
    connection_.when_readable(std::move(then));
  } else {
    connection_.when_broken(std::move(then));
  }
}

void Session::on_readable() {
  if (buffer_.size() == buffer_.max_size()) return watch();
  error_code error;
  const std::size_t bytes = connection_.read_some(buffer_.prepare(buffer_.max_size() - buffer_.size()), error);
  buffer_.commit(bytes);
  if (error == asio::error::eof) {
    // The client will send no more, but may still read. The first bytes of an answer find out: a client that is gone
    // replies with a reset, and for one that reads they are the beginning of its answer.
    read_closed_ = true;
    probe_due_ = true;
    wake();
  } else if (error && error != asio::error::would_block) {
    gone_ = true;
    return wake();
  }
  watch();
}

}  // namespace quire::api::http
