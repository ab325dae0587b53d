// A coroutine that writes text in parts: it suspends when a part is full and is resumed once that part was taken. So an
// answer is never in memory as a whole, however long it becomes.
// Shape   Writing write(std::string& out) { …; co_await part_end(out); …; Writing one = other(out); co_await one; }
// Owner   the consumer of the parts. Objects that a coroutine refers to outlive it; a Writing that it awaits is a named
//         variable.
// Thread  one at a time.
// Fails   an exception inside leaves resume() and finish(); the Writing must not be resumed after that.
#pragma once

#include <coroutine>
#include <cstddef>
#include <string>
#include <utility>

namespace quire::api {

inline constexpr std::size_t kPartBytes = std::size_t{256} << 10;

class [[nodiscard]] Writing {
 public:
  struct promise_type {
    // The coroutine of the chain that resume() continues; a variable of the outermost one, shared by all.
    std::coroutine_handle<promise_type>* innermost = nullptr;
    std::coroutine_handle<promise_type> outer = nullptr;
    std::coroutine_handle<promise_type> own_innermost = nullptr;

    Writing get_return_object() { return Writing(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        const promise_type& promise = ended.promise();
        if (!promise.outer) return std::noop_coroutine();
        *promise.innermost = promise.outer;
        return promise.outer;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Writing() = default;  // writes nothing: done() is true
  Writing(Writing&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Writing& operator=(Writing&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Writing() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return !handle_ || handle_.done(); }
  void resume() {  // writes up to the end of the next part
    if (done()) return;
    promise_type& promise = handle_.promise();
    if (promise.innermost == nullptr) {
      promise.own_innermost = handle_;
      promise.innermost = &promise.own_innermost;
    }
    promise.own_innermost.resume();
  }
  void finish() {  // writes the rest as one part
    while (!done()) resume();
  }

  // A Writing awaits another one: the parts of that become its own.
  bool await_ready() const noexcept { return done(); }
  std::coroutine_handle<> await_suspend(Handle awaiting) noexcept {
    handle_.promise().outer = awaiting;
    handle_.promise().innermost = awaiting.promise().innermost;
    *awaiting.promise().innermost = handle_;
    return handle_;
  }
  void await_resume() const noexcept {}

 private:
  explicit Writing(Handle handle) : handle_(handle) {}
  Handle handle_ = nullptr;
};

// Suspends once `out` has kPartBytes or more.
struct PartEnd {
  bool full;
  bool await_ready() const noexcept { return !full; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};
inline PartEnd part_end(const std::string& out) { return {out.size() >= kPartBytes}; }

}  // namespace quire::api
