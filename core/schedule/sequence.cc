#include "core/schedule/sequence.h"

#include <algorithm>

#include "core/base/check.h"

namespace quire::schedule {

void Sequence::adopt_prefix(kv::PrefixIndex& index) {
  CHECK(table.blocks().empty());
  const std::uint32_t block_tokens = table.block_tokens();
  for (const kv::PrefixIndex::Hit& hit : index.match(tokens_, (num_tokens() - 1) / block_tokens)) {
    table.adopt(hit.block);
    last_entry_ = hit.entry;
    ++num_published_;
  }
  computed_ = num_published_ * block_tokens;
}

void Sequence::publish_prefix(kv::PrefixIndex& index) {
  const std::uint32_t block_tokens = table.block_tokens();
  for (; (num_published_ + 1) * block_tokens <= computed_; ++num_published_) {
    const BlockId own = table.blocks()[num_published_];
    const auto tokens = this->tokens().subspan(std::size_t{num_published_} * block_tokens, block_tokens);
    const kv::PrefixIndex::Hit hit = index.insert(last_entry_, tokens, own);
    if (hit.block != own) table.replace(num_published_, hit.block);
    last_entry_ = hit.entry;
  }
}

flow::Finish Sequence::append(TokenId token) {
  tokens_.push_back(token);
  const auto& stops = request_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return flow::Finish::kStop;
  return num_generated() >= request_.max_tokens ? flow::Finish::kLength : flow::Finish::kNone;
}

}  // namespace quire::schedule
