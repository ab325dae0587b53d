// An answer that a worker makes from the body alone, without the waiting line and the engine.
// Owner   the session.
// Thread  as http::Answer says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/services/services.h"
#include "api/wire/errors.h"
#include "api/wire/exchange.h"

namespace quire::api::http {

class WorkerAnswer final : public Answer {
 public:
  // Makes the whole answer from the body. Errors are responses, too.
  using Make = Response (*)(const Services& services, const std::string& body, Allowance& allowance);

  // `services` outlives the answer.
  WorkerAnswer(const Services& services, Request request, Make make)
      : services_(services), body_(std::move(request.body)), make_(make) {}

  std::size_t work_bytes() const override { return body_.size(); }
  std::optional<Lane> work(Lane lane, Allowance& allowance) override {
    response_ = make_(services_, body_, allowance);
    if (allowance.end() == Allowance::End::kTime) {
      if (lane == Lane::kQuick) return Lane::kSlow;
      response_ = error_response(took_too_long());
    }
    body_ = std::string();
    return std::nullopt;
  }
  std::optional<Response> admit(const IoHandle&) override { return std::move(response_); }
  bool streams() const override { return false; }
  Taken take() override { return {}; }
  std::string events() override { return {}; }
  bool finished() const override { return true; }
  const Error* failure() const override { return nullptr; }
  Response whole() override { return {}; }  // never called, because admit() returns the response
  void fail(Error) override {}

 private:
  const Services& services_;
  std::string body_;
  const Make make_;
  Response response_;
};

}  // namespace quire::api::http
