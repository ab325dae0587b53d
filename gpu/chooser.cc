#include "gpu/chooser.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "gpu/steps.h"

namespace quire::gpu {
namespace {

using backend::LogitsRow;

constexpr std::uint32_t pieces_of(std::uint32_t vocab) {
  return (vocab + PrepareRows::kPiece - 1) / PrepareRows::kPiece;
}

// Byte offsets of verifications and nodes behind the rows, and of the end.
struct Places {
  std::size_t verifications;
  std::size_t nodes;
  std::size_t end;
};
constexpr Places places_of(std::size_t num_rows, std::size_t num_verifications, std::size_t num_nodes) {
  Places places{};
  places.verifications = on_boundary(num_rows * sizeof(LogitsRowArgs));
  places.nodes = places.verifications + on_boundary(num_verifications * sizeof(VerificationArgs));
  places.end = places.nodes + on_boundary(num_nodes * sizeof(NodeToVerify));
  return places;
}

constexpr std::size_t result_bytes(std::size_t num_logits_rows, std::size_t num_candidates) {
  return num_logits_rows * sizeof(SampledRow) + num_candidates * sizeof(sample::Candidate);
}

template <typename T>
void put(const PinnedMemory& memory, std::size_t at, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(memory.data() + at, values.data(), values.size() * sizeof(T));
}

}  // namespace

bool chosen_on_device(const LogitsRow& logits_row) {
  return logits_row.num_nodes == 0 || !sample::accepts_by_rejection(logits_row.params);
}

Chooser::Chooser(Device& device, const ChooserOptions& options)
    : device_(device),
      options_{options.max_logits_rows, std::min(options.max_edited, options.max_logits_rows), options.edit_bytes},
      upload_(
          device,
          places_of(options.max_logits_rows, options.max_logits_rows, options.max_logits_rows).end + options.edit_bytes,
          "what is chosen by, on the host"),
      results_(device, result_bytes(options.max_logits_rows, std::size_t{options.max_logits_rows} * sample::kMaxTop),
               "choices, on the host"),
      is_sent_(device.make_event()),
      is_uploaded_(device.make_event()),
      choices_(options.max_logits_rows) {
  const std::size_t most = options.max_logits_rows;
  CHECK_GT(most, 0u);
  packed_ = DeviceMemory(device, upload_.bytes(), "sampling arguments");
  sampled_ = DeviceMemory(device, results_.bytes(), "choices");
  chosen_ = DeviceMemory(device, most * sizeof(TokenId), "chosen tokens");
  list_at_.reserve(most + 1);
  rows_.reserve(most);
  verifications_.reserve(most);
  nodes_.reserve(most);
  host_verifications_.reserve(most);
  host_tokens_.reserve(most);
  edits_.reserve(options.edit_bytes);
}

void Chooser::make_room(std::uint32_t width) {
  const std::size_t vocab = std::min<std::size_t>(width, sample::kMaxVocab);
  const std::size_t copies = std::size_t{options_.max_edited} * width * sizeof(float);
  if (copies > copies_.bytes()) copies_ = DeviceMemory(device_, copies, "rows of logits with their edits");
  const std::size_t highest = std::size_t{options_.max_logits_rows} * pieces_of(width) * sizeof(HighestOfPiece);
  if (highest > highest_.bytes()) highest_ = DeviceMemory(device_, highest, "highest logits");
  if (vocab > sampling_.adjusted.size()) sampling_ = sample::Scratch(vocab);
}

void Chooser::choose(const backend::Batch& batch, const float* logits, std::uint32_t width, std::uint32_t vocab) {
  logits_rows_ = batch.logits_rows;
  num_logits_rows_ = static_cast<std::uint32_t>(logits_rows_.size());
  CHECK_LE(num_logits_rows_, options_.max_logits_rows);
  CHECK_LE(vocab, sample::kMaxVocab);
  CHECK_LE(std::size_t{options_.max_edited} * width * sizeof(float), copies_.bytes());
  list_at_.assign(1, 0);
  for (const LogitsRow& logits_row : logits_rows_) {
    CHECK_LE(logits_row.params.num_top, sample::kMaxTop);
    list_at_.push_back(list_at_.back() + logits_row.params.num_top);
  }
  host_verifications_.clear();
  num_groups_ = 0;

  const Logits rows{logits, width, vocab};
  for (std::uint32_t verification = 0; verification < num_logits_rows_;
       verification += 1 + logits_rows_[verification].num_nodes) {
    if (chosen_on_device(logits_rows_[verification]) && add(verification, vocab)) continue;
    if (chosen_on_device(logits_rows_[verification]) && !rows_.empty()) {
      run_group(rows);
      if (add(verification, vocab)) continue;
    }
    host_verifications_.push_back(verification);
  }
  run_group(rows);
  if (num_logits_rows_ > 0) {
    device_.download_pinned(results_.data(), sampled_.data(), result_bytes(num_logits_rows_, list_at_.back()));
    is_uploaded_->record();
  }
  choose_on_host(batch, rows);
}

void Chooser::collect(std::span<backend::Choice> choices) {
  CHECK_EQ(choices.size(), num_logits_rows_);
  if (choices.empty()) return;
  is_uploaded_->wait();
  const auto* said = reinterpret_cast<const SampledRow*>(results_.data());
  const auto* candidates =
      reinterpret_cast<const sample::Candidate*>(results_.data() + result_bytes(num_logits_rows_, 0));
  for (std::uint32_t r = 0; r < num_logits_rows_; ++r) {
    const SampledRow& one = said[r];
    choices[r] = {one.token, one.finite != 0, one.logprob, {candidates + list_at_[r], one.num_top}, one.rank};
  }
  for (const std::uint32_t verification : host_verifications_) {
    std::ranges::copy(choices_.each().subspan(verification, 1 + logits_rows_[verification].num_nodes),
                      choices.begin() + verification);
  }
}

// Adds a verification to the group. False: the group has no room for it, and nothing changed.
bool Chooser::add(std::uint32_t verification, std::uint32_t vocab) {
  const LogitsRow& root = logits_rows_[verification];
  const std::size_t edits_before = edits_.size();
  const std::uint32_t edited_before = num_edited_;
  const auto first_row = static_cast<std::uint32_t>(rows_.size());
  for (std::uint32_t r = verification; r <= verification + root.num_nodes; ++r)
    rows_.push_back(logits_row_args(r, vocab));
  if (num_edited_ > options_.max_edited || edits_.size() > options_.edit_bytes) {
    rows_.resize(first_row);
    edits_.resize(edits_before);
    num_edited_ = edited_before;
    return false;
  }
  VerificationArgs entry{first_row, static_cast<std::uint32_t>(nodes_.size()), root.num_nodes, 0};
  if (root.num_nodes != 0) entry.lookahead_nodes = root.draft->lookahead_nodes(root.num_nodes);
  verifications_.push_back(entry);
  for (std::uint32_t i = 0; i < root.num_nodes; ++i) nodes_.push_back({root.draft->token(i), root.draft->parent(i)});
  return true;
}

LogitsRowArgs Chooser::logits_row_args(std::uint32_t logits_row, std::uint32_t vocab) {
  const LogitsRow& from = logits_rows_[logits_row];
  LogitsRowArgs row;
  row.params = from.params;
  row.logits_row = logits_row;
  row.position = from.position;
  // Rejection sampling of a logits row without draft tokens draws from the residual stream of depth 1 (acceptance.h).
  if (sample::accepts_by_rejection(from.params)) row.domain = sample::ahead(sample::Domain::kResidual, 1);
  row.given = from.given;
  row.list = list_at_[logits_row];
  if (from.edits.empty() || from.given >= 0) return row;
  const std::size_t words = std::min<std::size_t>(from.edits.allowed.size(), (vocab + 31) / 32);
  row.copy = num_edited_++;
  row.repetition = from.edits.repetition;
  row.frequency = from.edits.frequency;
  row.presence = from.edits.presence;
  row.num_each = static_cast<std::uint32_t>(from.edits.each.size());
  row.num_forbidden = static_cast<std::uint32_t>(from.edits.forbidden.size());
  row.num_allowed = static_cast<std::uint32_t>(words);
  row.each = list(from.edits.each);
  row.forbidden = list(from.edits.forbidden);
  row.allowed = list(from.edits.allowed.first(words));
  return row;
}

// Appends a list to the edits and returns its offset. The edits may exceed edit_bytes: add() then removes them.
template <typename T>
std::size_t Chooser::list(std::span<const T> values) {
  const std::size_t at = edits_.size();
  edits_.resize(at + on_boundary(values.size_bytes()));
  if (!values.empty()) std::memcpy(edits_.data() + at, values.data(), values.size_bytes());
  return at;
}

void Chooser::run_group(const Logits& logits) {
  if (rows_.empty()) return;
  ++num_groups_;
  const Places places = places_of(rows_.size(), verifications_.size(), nodes_.size());
  for (LogitsRowArgs& row : rows_) {
    row.each += places.end;
    row.forbidden += places.end;
    row.allowed += places.end;
  }
  // Waits for the upload of the previous group, or of a step that was never collected.
  is_sent_->wait();
  put(upload_, 0, rows_);
  put(upload_, places.verifications, verifications_);
  put(upload_, places.nodes, nodes_);
  put(upload_, places.end, edits_);
  device_.upload_pinned(packed_.data(), upload_.data(), places.end + edits_.size());
  is_sent_->record();

  const auto* packed = packed_.as<const std::byte>();
  const std::uint32_t pieces = pieces_of(logits.vocab);
  PrepareRows::Args prepare;
  prepare.packed = packed;
  prepare.logits = logits.rows;
  prepare.width = logits.width;
  prepare.vocab = logits.vocab;
  prepare.copies = copies_.as<float>();
  prepare.highest = highest_.as<HighestOfPiece>();
  prepare.num_pieces = pieces;
  device_.start(device_.kernels().prepare_rows, {static_cast<unsigned>(rows_.size()), pieces}, prepare);

  ChooseVerified::Args choose;
  choose.rows = reinterpret_cast<const LogitsRowArgs*>(packed);
  choose.verifications = reinterpret_cast<const VerificationArgs*>(packed + places.verifications);
  choose.nodes = reinterpret_cast<const NodeToVerify*>(packed + places.nodes);
  choose.logits = logits.rows;
  choose.width = logits.width;
  choose.vocab = logits.vocab;
  choose.copies = copies_.as<const float>();
  choose.highest = highest_.as<const HighestOfPiece>();
  choose.num_pieces = pieces;
  choose.said = sampled_.as<SampledRow>();
  choose.tokens = chosen_.as<TokenId>();
  choose.lists = reinterpret_cast<sample::Candidate*>(sampled_.as<std::byte>() + num_logits_rows_ * sizeof(SampledRow));
  device_.start(device_.kernels().choose_verified, {static_cast<unsigned>(verifications_.size()), 1}, choose);

  rows_.clear();
  verifications_.clear();
  nodes_.clear();
  edits_.clear();
  num_edited_ = 0;
}

void Chooser::choose_on_host(const backend::Batch& batch, const Logits& logits) {
  if (host_verifications_.empty()) return;
  choices_.begin(batch);
  std::size_t next = 0;
  for (std::uint32_t verification = 0; verification < choices_.num_verifications() && next < host_verifications_.size();
       ++verification) {
    const std::uint32_t first = choices_.first_of(verification);
    if (first != host_verifications_[next]) continue;
    ++next;
    const std::size_t rows = 1 + logits_rows_[first].num_nodes;
    host_logits_.resize(std::max(host_logits_.size(), rows * logits.width));
    device_.download(host_logits_.data(), logits.rows + std::size_t{first} * logits.width,
                     rows * logits.width * sizeof(float));
    const auto row_of = [&](std::uint32_t r) {
      const std::span<const float> row =
          std::span<const float>(host_logits_).subspan(std::size_t{r - first} * logits.width, logits.vocab);
      return backend::LogitRow{row, sample::highest_of(row)};
    };
    choices_.run(verification, row_of, sampling_);
    host_tokens_.clear();
    for (std::size_t i = 0; i < rows; ++i) host_tokens_.push_back(choices_.each()[first + i].token);
    device_.upload(chosen_.as<TokenId>() + first, host_tokens_.data(), rows * sizeof(TokenId));
  }
}

}  // namespace quire::gpu
