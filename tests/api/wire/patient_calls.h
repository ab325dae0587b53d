// A worker's calls for a request, for as long as they take.
#pragma once

#include <string>

#include "api/chat/render_chat.h"
#include "api/completions/render_completion.h"
#include "api/messages/messages_formatter.h"
#include "api/tokenize/tokenize.h"
#include "core/base/allowance.h"

namespace quire::api {

inline http::Response tokenize(const Services& services, const std::string& body) {
  Allowance patient;
  return tokenize(services, body, patient);
}
inline http::Response detokenize(const Services& services, const std::string& body) {
  Allowance patient;
  return detokenize(services, body, patient);
}
inline http::Response render_completion(const Services& services, const std::string& body) {
  Allowance patient;
  return render_completion(services, body, patient);
}

namespace chat {

inline http::Response render(const Services& services, const std::string& body) {
  Allowance patient;
  return render(services, body, patient);
}

}  // namespace chat
namespace messages {

inline http::Response count_tokens(const Services& services, const std::string& body) {
  Allowance patient;
  return count_tokens(services, body, patient);
}

}  // namespace messages
}  // namespace quire::api
