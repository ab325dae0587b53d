// Where an io thread's streams meet the engine: a slot per open stream, one ready bitmap, one wake-up per step.
// Shape   max_streams slots; the bitmap has a bit for each. A wake-up tells some kMostTold streams, and what is left comes with
//         another: what else the io thread has to do is done in between.
// Owner   the io thread; TokenStreams hold the hub alive and give their slot back when the last holder lets go.
// Thread  open(), drain(), news_since(): its io thread. mark(), flush(): the engine thread. Giving a slot back: any.
// Fails   open(): null when every slot is taken.
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
  static constexpr std::uint32_t kMostTold = 256;

  // `wake` is called when there is news and no earlier wake-up is still on its way, from the engine thread, or from drain() when it leaves some: it
  // must make the io thread call drain() soon and must not block (an eventfd write, an asio::post). `doorbell` outlives every stream.
  StreamHub(std::uint32_t max_streams, std::function<void()> wake, Doorbell& doorbell);

  // `on_ready` runs on the io thread, from drain(), when the stream has news. It must not throw. It may be called with
  // nothing to pop, also after the end was popped; it is destroyed by whoever drops the stream last.
  // With each token so many candidates can be told, <= sample::kMaxTop. `scores`: for a request that scores its prompt.
  // `embedding`: for one that pools it.
  std::shared_ptr<TokenStream> open(std::function<void()> on_ready, std::uint32_t num_top = 0,
                                    std::unique_ptr<PromptScores> scores = nullptr,
                                    std::unique_ptr<PromptEmbedding> embedding = nullptr);

  // Calls on_ready of streams that were marked.
  void drain();
  // Inside on_ready: no event that it is about was pushed earlier. Elsewhere: nothing.
  TimePoint news_since() const { return news_since_; }

  void mark(std::uint32_t slot);
  void flush();

  std::uint32_t num_open() const { return open_.load(std::memory_order_relaxed); }

 private:
  friend class TokenStream;
  void give_back(std::uint32_t slot);

  std::function<void()> wake_;
  Doorbell& doorbell_;
  bool marked_ = false;          // engine thread only: something was marked since the last flush()
  TimePoint marked_at_{};        // engine thread only: when that began
  TimePoint news_since_{};       // io thread only
  TimePoint left_since_{};       // io thread only: as that, of what the last drain() left; zero: it left nothing
  std::uint32_t next_word_ = 0;  // io thread only: of ready_, where the next drain() begins
  // The marked_at_ of the wake-up that is on its way: written by the engine once waking_ is its own, read by drain() before that
  // gives it away. relaxed: the wake-up itself is what publishes it.
  std::atomic<TimePoint> waking_since_{TimePoint{}};
  // A wake-up is on its way: set by the engine after marking (acq_rel), taken by drain() before it looks (acq_rel).
  std::atomic<bool> waking_{false};
  // One bit per slot. Set by the engine (release) after it pushed, taken by the io thread (exchange, acquire) in
  // drain().
  std::vector<std::atomic<std::uint64_t>> ready_;
  // Slots and their callbacks, guarded by mutex_: io opens and drains, whoever drops a stream last gives its slot back.
  std::mutex mutex_;
  std::vector<std::weak_ptr<TokenStream>> streams_;
  std::vector<std::uint32_t> free_;
  std::atomic<std::uint32_t> open_{0};  // written under mutex_, read by metrics: relaxed
};

}  // namespace quire::bridge
