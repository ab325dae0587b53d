// One HTTP exchange as the layers above sockets see it: a request, and a response at once or an answer made over time.
// Owner   values; the session owns the Answer. Nothing here knows of sockets, so all of api/openai is tested without
//         them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/keys/caller.h"
#include "api/tracing/request_span.h"
#include "api/workers.h"
#include "core/base/allowance.h"
#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/bridge/stream_hub.h"

namespace quire::api::http {

inline constexpr int kStatusOk = 200;  // every other status is in api/openai/errors.cc

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
  std::string id;                                // X-Request-Id, the client's or ours
  std::string key;                               // X-Request-Key, as sent
  std::string host;                              // Host, as sent
  std::string origin;                            // Origin, as sent: a web page's that sends the request
  std::string fetch_site;                        // Sec-Fetch-Site, as sent by browsers
  bool of_anthropics_client = false;             // it says which version of Anthropic's API it speaks
  bool at_loopback = false;                      // it came to a port that this machine alone can reach
  std::string authorization;                     // as sent
  std::string api_key;                           // x-api-key, as sent
  bool credentials_repeated = false;             // either of them came more than once
  std::vector<Field> slo_hints;                  // those of requests::wish_headers() that it has; twice what came twice
  std::shared_ptr<const keys::Caller> caller{};  // the router's: null where the server has no keys
  TimePoint arrival;                             // when its last byte was there
  bool body_comes = false;                       // its head says that it has one

  bool has_body() const { return body_comes || !body.empty(); }
};

struct Response {
  int status = kStatusOk;
  std::string content_type = "application/json";
  std::vector<Field> fields;
  std::string body;
};

struct Tally {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

// What an answer has of the io thread that it is made on.
struct IoHandle {
  std::shared_ptr<bridge::StreamHub> hub;           // where token streams are opened
  std::function<void()> on_news;                    // io thread: take() has something to do
  std::function<void(std::function<void()>)> post;  // any thread: a job for the io thread
};

// Limit of what one time slice of an io thread may write, in units of about a token or number with its JSON: some 0.2
// ms.
inline constexpr std::size_t kTurnSize = 2048;

// The part of the engine's events that an answer has taken.
struct Taken {
  std::size_t size = 0;  // of the events that it makes, in units of kTurnSize
  bool more = false;     // there is more to take: in another turn
};

// Called in this order: work and open as often as they ask for, admit, then take and events whenever there is news,
// until finished; destruction at any time cancels what still runs.
// Shape   of what the engine said a call takes no more than a turn may write, and a token more.
// Thread  work(): a worker. events(), whole(), more(): a worker, too, where it is kTurnSize or more that is written
//         at once. All else: the io thread of its connection, and nothing while a worker has it.
class Answer {
 public:
  virtual ~Answer() = default;

  virtual std::size_t work_bytes() const = 0;  // what work() holds, for the workers' budget
  // Bodies are parsed and tokenised, grammars made. The lane where it has to begin again, because its allowance ended
  // in this one; none: it is done, with whatever outcome.
  virtual std::optional<Lane> work(Lane lane, Allowance& allowance) = 0;

  // Makes ready for admission what takes long where there is much of it, a turn's share at a time. True: again, in
  // another turn.
  virtual bool open(const IoHandle&) { return false; }
  // Empty: admitted, and `io_handle.on_news` is called whenever take() has something to do. Else: the whole answer, a
  // refusal or what work() has made.
  virtual std::optional<Response> admit(const IoHandle& io_handle) = 0;

  virtual std::vector<Field> fields() const { return {}; }  // of its head, whatever becomes of it; once work() is done
  virtual bool streams() const = 0;                         // server-sent events, or one response at the end
  virtual Taken take() = 0;                                 // what the engine said
  virtual std::string events() = 0;                     // of what was taken since the last call; empty unless streams()
  virtual bool finished() const = 0;                    // nothing more will come
  virtual bool failed() const = 0;                      // finished with an error: whole() says which
  virtual Response whole() = 0;                         // once finished, when no event has been sent
  virtual std::size_t whole_size() const { return 0; }  // of that, roughly: how many tokens and numbers are written
  // True: events() or whole() gave a part, and more() gives the next one. Nothing else is called between.
  virtual bool has_more() const { return false; }
  virtual std::string more() { return {}; }
  virtual void fail(Error error) = 0;  // cut short by us; the next events() say so
  virtual Tally tally() const = 0;
  virtual std::optional<tracing::Generated> generated() const { return std::nullopt; }  // for its span, at its end
};

using Reply = std::variant<Response, std::unique_ptr<Answer>>;

}  // namespace quire::api::http
