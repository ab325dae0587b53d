#include "core/speculate/lookup/rest_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/start_error.h"

namespace quire::speculate {
namespace {

static_assert(Followers::kNothing == Datastore::kEnd);

// Occurrences of a match: `num_looked_at` places of a range, evenly spaced.
class InStore final : public Followers {
 public:
  InStore(const Datastore& store, Datastore::Range range, std::uint32_t num_looked_at, std::uint32_t match)
      : store_(store), range_(range), num_looked_at_(num_looked_at), match_(match) {}
  TokenId after(std::uint32_t occurrence, std::uint32_t ahead) const override {
    const std::uint64_t steps = std::uint64_t{occurrence} * range_.count / num_looked_at_;
    return store_.at(range_.first + static_cast<std::uint32_t>(steps), match_ + ahead);
  }

 private:
  const Datastore& store_;
  Datastore::Range range_;
  std::uint32_t num_looked_at_;
  std::uint32_t match_;
};

// Opens the file even if options are wrong, so that all problems are reported at once.
Datastore open(const RestOptions& options, std::uint64_t tokenizer_key) {
  constexpr std::uint32_t kLongest = Datastore::kSortedTokens;
  std::vector<std::string> problems;
  const auto range = [&problems](std::string_view name, auto value, auto low, auto high) {
    if (!(value >= low && value <= high))
      problems.push_back(fmt::format("{} {}: expected {}..{}", name, value, low, high));
  };
  range("max_match", options.max_match, 1u, kLongest);
  range("min_match", options.min_match, 1u, std::clamp(options.max_match, 1u, kLongest));
  range("max_occurrences", options.max_occurrences, 1u, 65536u);
  range("min_token_prob", options.min_token_prob, 0.0f, 1.0f);
  Result<Datastore> store = Datastore::open(options.datastore, tokenizer_key);
  if (!store) {
    problems.push_back(fmt::format("datastore: {}; `quire build-datastore` makes one", store.error().message));
  }
  if (!problems.empty()) throw StartError(fmt::format("{}", fmt::join(problems, "\n")));
  return *std::move(store);
}

}  // namespace

RestDrafter::RestDrafter(const RestOptions& options, std::uint64_t tokenizer_key)
    : options_(options), store_(open(options, tokenizer_key)) {}

void RestDrafter::propose(std::span<const Asked> asked, std::span<sample::TokenTree> trees) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    StepCalibration::Draft& last = last_[asked[i].seq];
    foresight_.learn(last, asked[i].tokens);
    const auto [range, match] = longest(asked[i].tokens);
    if (range.count == 0) continue;
    const std::uint32_t num_looked_at = std::min(range.count, options_.max_occurrences);
    continuations_.grow(InStore(store_, range, num_looked_at, match), num_looked_at,
                        {asked[i].max_nodes, asked[i].max_depth, options_.min_token_prob, options_.width}, trees[i]);
    foresight_.promise(trees[i], match, asked[i].tokens.size(), last);
  }
}

RestDrafter::Match RestDrafter::longest(std::span<const TokenId> tokens) const {
  Match best;
  std::uint32_t low = options_.min_match;
  auto high = static_cast<std::uint32_t>(std::min<std::size_t>(options_.max_match, tokens.size()));
  while (low <= high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const Datastore::Range range = store_.find(tokens.last(middle));
    if (range.count == 0) {
      high = middle - 1;
    } else {
      best = {range, middle};
      low = middle + 1;
    }
  }
  return best;
}

}  // namespace quire::speculate
