// One HTTP exchange as the layers above the sockets see it: a request, and either a complete Response or an Answer that
// is made over time.
// Owner   values; the session owns the Answer. Nothing here depends on sockets, so endpoints are tested without them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/wire/caller.h"
#include "api/wire/request_span.h"
#include "api/wire/workers.h"
#include "core/base/allowance.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/bridge/stream_hub.h"

namespace quire::api::http {

inline constexpr int kStatusOk = 200;  // every other status is in api/wire/errors.cc

struct Field {
  std::string name;
  std::string value;
};

struct Request {
  std::string method;
  std::string path;  // without query; absolute-form targets are reduced to it
  std::string content_type;
  std::string content_encoding;
  std::string body;
  std::string id;                     // X-Request-Id: the client's if it is valid, else random
  std::string key;                    // X-Request-Key, as sent
  std::string host;                   // Host, as sent
  std::string origin;                 // Origin, as sent: of the web page that sends the request
  std::string fetch_site;             // Sec-Fetch-Site, as sent by browsers
  bool of_anthropics_client = false;  // it has an anthropic-version header
  bool at_loopback = false;           // received at an address that only this machine can reach
  std::string authorization;          // as sent
  std::string api_key;                // x-api-key, as sent
  bool credentials_repeated = false;  // authorization or x-api-key was sent more than once
  std::vector<Field> slo_hints;       // its headers of requests::slo_hint_headers(), repeated ones repeatedly
  std::shared_ptr<const keys::Caller> caller{};  // set by the router; null without keys or on a path that needs none
  TimePoint arrival;                             // when its last byte was received
  bool body_comes = false;                       // its head announces a body

  bool has_body() const { return body_comes || !body.empty(); }
};

// An error that was answered, for the log.
struct ReportedError {
  std::string_view type;  // a literal: invalid_request_error, context_length_exceeded, …
  std::string message;
  std::string param;  // the field at fault; empty if there is none
};

struct Response {
  int status = kStatusOk;
  std::string content_type = "application/json";
  std::vector<Field> fields;
  std::string body;
  std::optional<ReportedError> error{};  // that the body is about
};

// The functions of its io thread that an Answer uses.
struct IoHandle {
  std::shared_ptr<bridge::StreamHub> hub;           // opens token streams
  std::function<void()> on_events;                  // called on the io thread: there are pending events for take()
  std::function<void(std::function<void()>)> post;  // any thread: runs a job on the io thread
};

// Limit of the output of one time slice of an io thread, about 0.2 ms of writing. A unit is about one token or number
// with its JSON.
inline constexpr std::size_t kSliceSize = 2048;

// The result of Answer::take().
struct Taken {
  std::size_t size = 0;  // of the events that events() will write, in the units of kSliceSize
  bool more = false;     // pending events are left for another time slice
};

// An answer that is made over time. The session calls work() and open() as often as they ask for, then admit(), then
// take() and events() whenever events are pending, until finished(). Destruction at any time cancels running sequences.
// Shape   one call of take() takes at most what one time slice may write, and one token more.
// Thread  work(): a worker. events(), whole(), more(): a worker if they write kSliceSize or more at once, else the io
//         thread of the connection. All else: that io thread, and never while a worker runs one of these.
class Answer {
 public:
  virtual ~Answer() = default;

  virtual std::size_t work_bytes() const = 0;  // bytes that work() holds, for the workers' budget
  // Parses and tokenises the body, compiles its grammar. Returns the lane in which it must start again, because its
  // allowance ended in `lane`; none: it is done, successful or not.
  virtual std::optional<Lane> work(Lane lane, Allowance& allowance) = 0;

  // Does a time slice's share of the preparation for admission that is slow in quantity (opening token streams). True:
  // it must be called again, in another time slice.
  virtual bool open(const IoHandle&) { return false; }
  // Empty: the request is admitted, and `io_handle.on_events` is called whenever events are pending. Else the complete
  // response: a refusal, or the result of work().
  virtual std::optional<Response> admit(const IoHandle& io_handle) = 0;

  // Header fields of its response, successful or refused. Not called while work() runs.
  virtual std::vector<Field> fields() const { return {}; }
  virtual bool streams() const = 0;  // true: server-sent events; false: one response at the end
  virtual Taken take() = 0;          // takes pending events of the engine
  // The server-sent events of everything taken since the last call; empty unless streams().
  virtual std::string events() = 0;
  virtual bool finished() const = 0;         // no more events will come
  virtual const Error* failure() const = 0;  // if it finished with an error, which whole() returns
  bool failed() const { return failure() != nullptr; }
  virtual Response whole() = 0;                         // once finished and if no event was sent
  virtual std::size_t whole_size() const { return 0; }  // approximate size of whole(), in the units of kSliceSize
  // True: events() or whole() returned only a part, and more() returns the next. Until it is false the session calls
  // none of take(), events() and whole().
  virtual bool has_more() const { return false; }
  virtual std::string more() { return {}; }
  virtual void fail(Error error) = 0;  // ends it early with an error of the server, which the next events() write
  virtual std::optional<tracing::Generated> generated() const { return std::nullopt; }  // for log and span, at the end
};

using Reply = std::variant<Response, std::unique_ptr<Answer>>;

}  // namespace quire::api::http
