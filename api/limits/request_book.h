// The running requests and the most recent finished ones, by id: a client reads the timeline of a request, or cancels
// it; an operator lists those that run.
// Shape   running: from enter() to leave(), so those that wait to be scheduled, too. A request has an id, which its
//         client may choose and need not be unique, and a key that only its client knows. On a server with API keys it
//         belongs to one of them: the holder of that key and administrators need no request key, and nobody else finds
//         it. The last max_finished finished requests are kept, and at most max_finished * kTimelinesPerRequest
//         timelines of them; the oldest are dropped first.
// Owner   app; outlives every request entered.
// Thread  any: a mutex guards it. The engine thread never uses it.
// Fails   find() and cancel() fail in the same way for a wrong id, a wrong key and a wrong asker; keys are compared in
//         constant time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/bridge/timeline.h"
#include "core/bridge/token_stream.h"

namespace quire::api::requests {

// The record of one request. Its maker fills it in before enter() and does not change it afterwards. It never holds a
// prompt or an answer.
struct RequestRecord {
  // Contents of its body.
  struct Asked {
    std::string model{};
    bool stream = false;
    std::uint64_t prompt_tokens = 0;  // of all prompts, each counted once
    std::size_t num_prompts = 1;      // >= 1
  };

  std::string id;
  std::string key;
  std::string owner{};  // name of the API key that it was sent with; empty: the server has no keys
  std::string path{};   // of its HTTP request
  TimePoint arrival{};  // as the timelines count from
  Asked asked{};
  std::vector<std::shared_ptr<const bridge::Timeline>> timelines;  // one per sequence, those of a prompt together
  std::vector<std::weak_ptr<bridge::TokenStream>> streams;         // of all sequences; cleared by leave()
  std::atomic<bool> cancelled{
      false};  // written by cancel() (release) before it cancels the streams; read by any (acquire)
};

class RequestBook {
 public:
  static constexpr std::size_t kTimelinesPerRequest = 8;

  explicit RequestBook(std::uint32_t max_finished) : max_finished_(max_finished) {}

  void enter(std::shared_ptr<RequestRecord> record);
  void withdraw(const std::shared_ptr<RequestRecord>& record);  // removes it, as if it had never been entered
  // Marks it as finished.
  void leave(const std::shared_ptr<RequestRecord>& record);

  struct Found {
    std::shared_ptr<const RequestRecord> record;
    bool running = false;
  };
  struct Asker {
    std::string_view owner{};  // as RequestRecord::owner
    bool sees_all = false;     // an administrator: finds the requests of every owner
  };
  // `key` may be empty if the asker has an owner or sees all.
  std::optional<Found> find(std::string_view id, std::string_view key, Asker asker) const;
  std::optional<Found> find(std::string_view id, std::string_view key) const { return find(id, key, {}); }
  // Cancels every sequence of a running request; the engine drops them within one step. False: no such request runs.
  bool cancel(std::string_view id, std::string_view key, Asker asker);
  bool cancel(std::string_view id, std::string_view key) { return cancel(id, key, {}); }

  struct Running {
    std::vector<std::shared_ptr<const RequestRecord>> records;  // oldest first
    std::size_t left_out = 0;
  };
  Running running(std::size_t max_records) const;

 private:
  using Pages = std::multimap<std::string, std::shared_ptr<RequestRecord>, std::less<>>;
  struct OlderFirst {
    bool operator()(const std::shared_ptr<RequestRecord>& a, const std::shared_ptr<RequestRecord>& b) const {
      return a->arrival != b->arrival ? a->arrival < b->arrival : a < b;
    }
  };

  Pages::const_iterator page_of(const RequestRecord& record) const;
  Pages::const_iterator page_of(std::string_view id, std::string_view key, const Asker& asker) const;
  void drop_oldest();

  const std::size_t max_finished_;
  mutable std::mutex mutex_;  // guards everything below
  Pages pages_;               // by id, running and finished
  std::set<std::shared_ptr<RequestRecord>, OlderFirst> running_;
  std::deque<std::shared_ptr<RequestRecord>> finished_;  // oldest first
  std::size_t num_timelines_ = 0;                        // of the finished requests
};

}  // namespace quire::api::requests
