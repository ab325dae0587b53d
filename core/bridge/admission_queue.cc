#include "core/bridge/admission_queue.h"

#include <string>

namespace quire::bridge {
namespace {

Error closed_error() {
  return Error{Code::kUnavailable, "the server is shutting down and takes no new requests", "", 5};
}

constexpr std::uint64_t packed(std::uint64_t sequences, std::uint64_t tokens) { return sequences << 32 | tokens; }

}  // namespace

Credit& Credit::operator=(Credit&& other) noexcept {
  if (this != &other) {
    give_back();
    queue_ = std::exchange(other.queue_, nullptr);
    tokens_ = std::exchange(other.tokens_, 0);
    slot_ = std::move(other.slot_);
  }
  return *this;
}

void Credit::give_back() {
  if (AdmissionQueue* queue = std::exchange(queue_, nullptr)) {
    queue->held_.fetch_sub(packed(1, tokens_), std::memory_order_release);
    slot_.give_back();
  }
}

AdmissionQueue::AdmissionQueue(Limits limits, Doorbell& doorbell)
    : limits_(limits), doorbell_(doorbell), ring_(limits.max_sequences) {}

bool AdmissionQueue::take(std::uint32_t sequences, std::uint64_t tokens) {
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t new_sequences = (held >> 32) + sequences;
    const std::uint64_t new_tokens = (held & 0xffffffffu) + tokens;
    if (new_sequences > limits_.max_sequences || new_tokens > limits_.max_tokens) return false;
    if (held_.compare_exchange_weak(held, packed(new_sequences, new_tokens), std::memory_order_seq_cst)) return true;
  }
}

Result<Done> AdmissionQueue::admit(std::vector<Submission>& submissions) {
  if (closed_.load(std::memory_order_seq_cst)) return closed_error();  // also if it is full
  std::uint64_t tokens = 0;
  for (const Submission& submission : submissions) tokens += submission.request.prompt.size();
  const auto sequences = static_cast<std::uint32_t>(submissions.size());
  if (submissions.size() > limits_.max_sequences || tokens > limits_.max_tokens) {
    return invalid("prompt", "the request holds " + std::to_string(sequences) + " sequences of " +
                                 std::to_string(tokens) + " prompt tokens in all; the waiting line takes at most " +
                                 std::to_string(limits_.max_sequences) + " sequences and " +
                                 std::to_string(limits_.max_tokens) + " tokens");
  }
  if (!take(sequences, tokens)) {
    return Error{Code::kQueueFull,
                 "the waiting line is full: " + std::to_string(waiting_sequences()) + " of " +
                     std::to_string(limits_.max_sequences) + " sequences are waiting; try again later",
                 "", retry_after_s()};
  }
  // Checked again with the credits taken: either this thread sees that the queue was closed, or the thread that closed
  // it sees the credits, and waits for the submissions.
  if (closed_.load(std::memory_order_seq_cst)) {
    held_.fetch_sub(packed(sequences, tokens), std::memory_order_seq_cst);
    return closed_error();
  }
  for (Submission& submission : submissions) {
    submission.credit =
        Credit(this, static_cast<std::uint32_t>(submission.request.prompt.size()), std::move(submission.slot));
    CHECK(ring_.try_push(submission));  // the ring is never smaller than the credits
  }
  doorbell_.ring();
  return Done{};
}

std::optional<Submission> AdmissionQueue::pop() { return ring_.try_pop(); }

void AdmissionQueue::close() { closed_.store(true, std::memory_order_seq_cst); }

std::uint32_t AdmissionQueue::waiting_sequences() const {
  return static_cast<std::uint32_t>(held_.load(std::memory_order_seq_cst) >> 32);
}
std::uint32_t AdmissionQueue::waiting_tokens() const {
  return static_cast<std::uint32_t>(held_.load(std::memory_order_relaxed));
}

// Expected time until half of the sequences that wait now have started, at the measured rate.
int AdmissionQueue::retry_after_s() const {
  const double line = waiting_sequences() / 2.0 + 1.0;
  return whole_retry_s(line * load_estimate_.rates().start_s);
}

}  // namespace quire::bridge
