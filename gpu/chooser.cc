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

// Where rows, walks and nodes of so many begin, and where they end.
struct Places {
  std::size_t walks;
  std::size_t nodes;
  std::size_t end;
};
constexpr Places places_of(std::size_t num_rows, std::size_t num_walks, std::size_t num_nodes) {
  Places places{};
  places.walks = on_boundary(num_rows * sizeof(RowToChoose));
  places.nodes = places.walks + on_boundary(num_walks * sizeof(WalkToChoose));
  places.end = places.nodes + on_boundary(num_nodes * sizeof(NodeOfWalk));
  return places;
}

constexpr std::size_t told_bytes(std::size_t num_logits_rows, std::size_t num_candidates) {
  return num_logits_rows * sizeof(Said) + num_candidates * sizeof(sample::Candidate);
}

template <typename T>
void put(const PinnedMemory& memory, std::size_t at, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(memory.data() + at, values.data(), values.size() * sizeof(T));
}

}  // namespace

bool chosen_on_device(const LogitsRow& logits_row) {
  return logits_row.num_nodes == 0 || !sample::accepts_by_law(logits_row.params);
}

Chooser::Chooser(Device& device, const ChooserOptions& options)
    : device_(device),
      options_{options.max_logits_rows, std::min(options.max_edited, options.max_logits_rows), options.edit_bytes},
      upload_(
          device,
          places_of(options.max_logits_rows, options.max_logits_rows, options.max_logits_rows).end + options.edit_bytes,
          "what is chosen by, on the host"),
      told_(device, told_bytes(options.max_logits_rows, std::size_t{options.max_logits_rows} * sample::kMaxTop),
            "choices, on the host"),
      is_sent_(device.make_event()),
      is_told_(device.make_event()),
      choices_(options.max_logits_rows) {
  const std::size_t most = options.max_logits_rows;
  CHECK_GT(most, 0u);
  packed_ = DeviceMemory(device, upload_.bytes(), "what is chosen by");
  said_ = DeviceMemory(device, told_.bytes(), "choices");
  chosen_ = DeviceMemory(device, most * sizeof(TokenId), "chosen tokens");
  list_at_.reserve(most + 1);
  rows_.reserve(most);
  walks_.reserve(most);
  nodes_.reserve(most);
  host_walks_.reserve(most);
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
  host_walks_.clear();
  num_groups_ = 0;

  const Logits rows{logits, width, vocab};
  for (std::uint32_t walk = 0; walk < num_logits_rows_; walk += 1 + logits_rows_[walk].num_nodes) {
    if (chosen_on_device(logits_rows_[walk]) && add(walk, vocab)) continue;
    if (chosen_on_device(logits_rows_[walk]) && !rows_.empty()) {
      run_group(rows);
      if (add(walk, vocab)) continue;
    }
    host_walks_.push_back(walk);
  }
  run_group(rows);
  if (num_logits_rows_ > 0) {
    device_.download_pinned(told_.data(), said_.data(), told_bytes(num_logits_rows_, list_at_.back()));
    is_told_->record();
  }
  choose_on_host(batch, rows);
}

void Chooser::collect(std::span<backend::Choice> choices) {
  CHECK_EQ(choices.size(), num_logits_rows_);
  if (choices.empty()) return;
  is_told_->wait();
  const auto* said = reinterpret_cast<const Said*>(told_.data());
  const auto* candidates = reinterpret_cast<const sample::Candidate*>(told_.data() + told_bytes(num_logits_rows_, 0));
  for (std::uint32_t r = 0; r < num_logits_rows_; ++r) {
    const Said& one = said[r];
    choices[r] = {one.token, one.finite != 0, one.logprob, {candidates + list_at_[r], one.num_top}, one.rank};
  }
  for (const std::uint32_t walk : host_walks_) {
    std::ranges::copy(choices_.each().subspan(walk, 1 + logits_rows_[walk].num_nodes), choices.begin() + walk);
  }
}

// False, and nothing changed: the group has no place for it.
bool Chooser::add(std::uint32_t walk, std::uint32_t vocab) {
  const LogitsRow& root = logits_rows_[walk];
  const std::size_t edits_before = edits_.size();
  const std::uint32_t edited_before = num_edited_;
  const auto first_row = static_cast<std::uint32_t>(rows_.size());
  for (std::uint32_t r = walk; r <= walk + root.num_nodes; ++r) rows_.push_back(told_of(r, vocab));
  if (num_edited_ > options_.max_edited || edits_.size() > options_.edit_bytes) {
    rows_.resize(first_row);
    edits_.resize(edits_before);
    num_edited_ = edited_before;
    return false;
  }
  WalkToChoose told{first_row, static_cast<std::uint32_t>(nodes_.size()), root.num_nodes, 0};
  if (root.num_nodes != 0) told.lookahead_nodes = root.draft->lookahead_nodes(root.num_nodes);
  walks_.push_back(told);
  for (std::uint32_t i = 0; i < root.num_nodes; ++i) nodes_.push_back({root.draft->token(i), root.draft->parent(i)});
  return true;
}

RowToChoose Chooser::told_of(std::uint32_t logits_row, std::uint32_t vocab) {
  const LogitsRow& from = logits_rows_[logits_row];
  RowToChoose row;
  row.params = from.params;
  row.logits_row = logits_row;
  row.position = from.position;
  // Where guesses are judged by law and there are none: acceptance.h.
  if (sample::accepts_by_law(from.params)) row.domain = sample::ahead(sample::Domain::kResidual, 1);
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

// Where it begins among the edits. They may outgrow the room: add() takes them back then.
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
  const Places places = places_of(rows_.size(), walks_.size(), nodes_.size());
  for (RowToChoose& row : rows_) {
    row.each += places.end;
    row.forbidden += places.end;
    row.allowed += places.end;
  }
  is_sent_->wait();  // what another group, or a step that nobody collected, was chosen by
  put(upload_, 0, rows_);
  put(upload_, places.walks, walks_);
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

  ChooseWalks::Args choose;
  choose.rows = reinterpret_cast<const RowToChoose*>(packed);
  choose.walks = reinterpret_cast<const WalkToChoose*>(packed + places.walks);
  choose.nodes = reinterpret_cast<const NodeOfWalk*>(packed + places.nodes);
  choose.logits = logits.rows;
  choose.width = logits.width;
  choose.vocab = logits.vocab;
  choose.copies = copies_.as<const float>();
  choose.highest = highest_.as<const HighestOfPiece>();
  choose.num_pieces = pieces;
  choose.said = said_.as<Said>();
  choose.tokens = chosen_.as<TokenId>();
  choose.lists = reinterpret_cast<sample::Candidate*>(said_.as<std::byte>() + num_logits_rows_ * sizeof(Said));
  device_.start(device_.kernels().choose_walks, {static_cast<unsigned>(walks_.size()), 1}, choose);

  rows_.clear();
  walks_.clear();
  nodes_.clear();
  edits_.clear();
  num_edited_ = 0;
}

void Chooser::choose_on_host(const backend::Batch& batch, const Logits& logits) {
  if (host_walks_.empty()) return;
  choices_.begin(batch);
  std::size_t next = 0;
  for (std::uint32_t walk = 0; walk < choices_.num_walks() && next < host_walks_.size(); ++walk) {
    const std::uint32_t first = choices_.first_of(walk);
    if (first != host_walks_[next]) continue;
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
    choices_.run(walk, row_of, sampling_);
    host_tokens_.clear();
    for (std::size_t i = 0; i < rows; ++i) host_tokens_.push_back(choices_.each()[first + i].token);
    device_.upload(chosen_.as<TokenId>() + first, host_tokens_.data(), rows * sizeof(TokenId));
  }
}

}  // namespace quire::gpu
