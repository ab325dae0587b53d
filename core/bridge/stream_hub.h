// The token streams of one io thread: a slot per open stream, one ready bitmap, one wake-up per step.
// Shape   max_streams slots, each with a bit in the bitmap. One drain() calls about kMaxCalled streams and leaves the
//         rest to another wake-up, so that other work of the io thread runs in between.
// Owner   the io thread, and every open TokenStream, which gives its slot back when it is destroyed.
// Thread  open(), drain(), pending_since(): its io thread. mark(), flush(): engine. num_open(), giving a slot back:
//         any.
// Fails   open(): null if every slot is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/clock.h"
#include "core/bridge/prompt_embedding.h"
#include "core/bridge/prompt_scores.h"

namespace quire::bridge {

class Doorbell;
class TokenStream;

class StreamHub : public std::enable_shared_from_this<StreamHub> {
 public:
  static constexpr std::uint32_t kMaxCalled = 256;

  // `wake` is called if events are pending and no earlier wake-up is under way, by flush() on the engine thread, or by
  // drain() if it leaves streams to be called. It must make the io thread call drain() soon and must not block (an
  // eventfd write, an asio::post). `doorbell` outlives every stream.
  StreamHub(std::uint32_t max_streams, std::function<void()> wake, Doorbell& doorbell);

  // `on_ready` is called by drain() on the io thread if the stream has pending events. It must not throw. It may be
  // called with nothing to pop, even after the end was popped. It is destroyed with the stream, by the thread that
  // drops the stream last. num_top: most candidates that come with each token, <= sample::kMaxTop. scores: output
  // buffer of a request that scores its prompt. embedding: output buffer of one that pools it.
  std::shared_ptr<TokenStream> open(std::function<void()> on_ready, std::uint32_t num_top = 0,
                                    std::unique_ptr<PromptScores> scores = nullptr,
                                    std::unique_ptr<PromptEmbedding> embedding = nullptr);

  // Calls on_ready of the marked streams.
  void drain();
  // Inside on_ready: no event of this call was pushed earlier. Elsewhere: zero.
  TimePoint pending_since() const { return pending_since_; }

  void mark(std::uint32_t slot);  // the slot's stream has a new event
  void flush();                   // wakes the io thread if a stream was marked since the last call

  std::uint32_t num_open() const { return open_.load(std::memory_order_relaxed); }

 private:
  friend class TokenStream;
  void give_back(std::uint32_t slot);

  std::function<void()> wake_;
  Doorbell& doorbell_;
  bool marked_ = false;          // engine thread only: a stream was marked since the last flush()
  TimePoint marked_at_{};        // engine thread only: time of the first such mark
  TimePoint pending_since_{};    // io thread only
  TimePoint left_since_{};       // io thread only: pending_since_ of the streams that drain() left; zero: none
  std::uint32_t next_word_ = 0;  // io thread only: index in ready_ where the next drain() begins
  // marked_at_ of the wake-up under way: written by the engine after it has set waking_, read by drain() before it
  // clears waking_. Relaxed: the wake-up itself publishes it.
  std::atomic<TimePoint> waking_since_{TimePoint{}};
  // A wake-up is under way: set by the engine after marking, or by drain() if it leaves streams; cleared by drain()
  // before it reads ready_ (all acq_rel).
  std::atomic<bool> waking_{false};
  // One bit per slot: set by the engine after a push (release), cleared by drain() on the io thread (acquire).
  std::vector<std::atomic<std::uint64_t>> ready_;
  // Guards streams_ and free_: the io thread opens and drains, and any thread may give a slot back.
  std::mutex mutex_;
  std::vector<std::weak_ptr<TokenStream>> streams_;
  std::vector<std::uint32_t> free_;
  std::atomic<std::uint32_t> open_{0};  // written under mutex_, read by metrics; relaxed
};

}  // namespace quire::bridge
