// The requests that run, and the last ones that ran, by name: for who asks what became of one, or wants one to end.
// Shape   every request has an id, which its client may have chosen and others may use too, and a key that only its
//         client knows. Where the server has API keys it belongs to one, whose holder needs no other; nobody else finds
//         it but an administrator. Of finished ones the last max_finished are kept, and at most kTimelinesPerRequest times as many
//         timelines; of both the oldest go first.
// Owner   app; outlives whoever enters requests.
// Thread  any: a mutex guards it. The engine never comes here.
// Fails   find() and cancel() say no alike whether the id, the key or the asker is wrong; keys are compared in constant time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bridge/timeline.h"
#include "core/bridge/token_stream.h"

namespace quire::bridge {

// What the book holds of one request. Who makes it fills it in before enter(), and changes nothing afterwards.
struct RequestRecord {
  std::string id;
  std::string key;
  std::string owner{};  // the name of the API key that it came with; empty: the server has none
  std::vector<std::shared_ptr<const Timeline>> timelines;  // one a sequence, in their order
  std::vector<std::weak_ptr<TokenStream>> streams;         // all of them; the book lets go of them at the end
  std::atomic<bool> cancelled{
      false};  // written by cancel() (release) before it cancels the streams; read by any (acquire)
};

class RequestBook {
 public:
  static constexpr std::size_t kTimelinesPerRequest = 8;

  explicit RequestBook(std::uint32_t max_finished) : max_finished_(max_finished) {}

  void enter(std::shared_ptr<RequestRecord> record);
  void withdraw(const std::shared_ptr<RequestRecord>& record);  // as if it had never been entered
  // It has ended: one of the finished now.
  void leave(const std::shared_ptr<RequestRecord>& record);

  struct Found {
    std::shared_ptr<const RequestRecord> record;
    bool running = false;
  };
  struct Asker {
    std::string_view owner{};  // as of a record
    bool sees_all = false;     // whoever they belong to
  };
  // `key` may be empty where the asker has a name.
  std::optional<Found> find(std::string_view id, std::string_view key, Asker asker) const;
  std::optional<Found> find(std::string_view id, std::string_view key) const { return find(id, key, {}); }
  // Every sequence of a running request is dropped by the engine within one step. False: no such request runs.
  bool cancel(std::string_view id, std::string_view key, Asker asker);
  bool cancel(std::string_view id, std::string_view key) { return cancel(id, key, {}); }

 private:
  struct Page {
    std::shared_ptr<RequestRecord> record;
    bool running = true;
  };
  using Pages = std::multimap<std::string, Page, std::less<>>;

  Pages::const_iterator page_of(const RequestRecord& record) const;
  Pages::const_iterator page_of(std::string_view id, std::string_view key, const Asker& asker) const;
  void drop_oldest();

  const std::size_t max_finished_;
  mutable std::mutex mutex_;                             // guards all below
  Pages pages_;                                          // by id
  std::deque<std::shared_ptr<RequestRecord>> finished_;  // oldest first
  std::size_t num_timelines_ = 0;                        // of the finished
};

}  // namespace quire::bridge
