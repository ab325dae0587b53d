// Threads that work for io threads, in lanes: what takes long holds up only what is like it.
// Shape   kReading: bodies, by their bytes. kWriting: long answers, one at a time, any number. The others: grammars, kMaxGrammars of
//         them each, one at a time. A grammar begins in kQuickGrammar and, where it takes longer than it may there, begins again in
//         kSlowGrammar.
// Owner   app; the destructor runs what is queued, then joins.
// Thread  post(): any.
// Fails   post(): false when the lane's line is full; the job was not taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/bridge/worker_pool.h"

namespace quire::api {

enum class Lane : std::uint8_t { kReading, kQuickGrammar, kSlowGrammar, kWriting };

class Workers {
 public:
  static constexpr std::size_t kMaxGrammars = 32;

  Workers(std::uint32_t num_readers, std::size_t max_bytes)
      : reading_(num_readers, max_bytes),
        writing_(1, ~std::size_t{0}),
        quick_grammars_(1, kMaxGrammars),
        slow_grammars_(1, kMaxGrammars) {}

  // `bytes` is what the job holds (its body); only kReading asks.
  bool post(Lane lane, std::size_t bytes, std::function<void()> job) {
    switch (lane) {
      case Lane::kReading:
        return reading_.post(bytes, std::move(job));
      case Lane::kWriting:
        return writing_.post(0, std::move(job));
      case Lane::kQuickGrammar:
        return quick_grammars_.post(1, std::move(job));
      case Lane::kSlowGrammar:
        break;
    }
    return slow_grammars_.post(1, std::move(job));
  }

 private:
  bridge::WorkerPool reading_;
  bridge::WorkerPool writing_;
  bridge::WorkerPool quick_grammars_;
  bridge::WorkerPool slow_grammars_;
};

}  // namespace quire::api
