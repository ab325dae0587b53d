// An answer that a worker makes by itself: it takes no place in the waiting line, and the engine never hears of it.
// Owner   the session.
// Thread  as http::Answer says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/http/exchange.h"
#include "api/openai/errors.h"
#include "api/services.h"

namespace quire::api::http {

class WorkedAnswer final : public Answer {
 public:
  // The whole answer, from the body alone. Its faults are responses, too.
  using Make = Response (*)(const Services& services, const std::string& body, Allowance& allowance);

  // `services` outlives it.
  WorkedAnswer(const Services& services, Request request, Make make)
      : services_(services), body_(std::move(request.body)), make_(make) {}

  std::size_t work_bytes() const override { return body_.size(); }
  std::optional<Lane> work(Lane lane, Allowance& allowance) override {
    response_ = make_(services_, body_, allowance);
    if (allowance.end() == Allowance::End::kTime) {
      if (lane == Lane::kQuick) return Lane::kSlow;
      response_ = openai::error_response(openai::took_too_long());
    }
    body_ = std::string();
    return std::nullopt;
  }
  std::optional<Response> admit(const IoHandle&) override {
    return std::move(response_);
  }  // there is nothing to wait for
  bool streams() const override { return false; }
  Taken take() override { return {}; }
  std::string events() override { return {}; }
  bool finished() const override { return true; }
  bool failed() const override { return false; }
  Response whole() override { return {}; }  // never asked for
  void fail(Error) override {}
  Tally tally() const override { return {}; }

 private:
  const Services& services_;
  std::string body_;
  const Make make_;
  Response response_;
};

}  // namespace quire::api::http
