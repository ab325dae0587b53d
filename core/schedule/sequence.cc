#include "core/schedule/sequence.h"

#include <algorithm>

namespace quire::schedule {

flow::Finish Sequence::append(TokenId token) {
  tokens_.push_back(token);
  const auto& stops = request_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return flow::Finish::kStop;
  return num_generated() >= request_.max_tokens ? flow::Finish::kLength : flow::Finish::kNone;
}

}  // namespace quire::schedule
