// Runs Hydra heads beside their target on the CPU backend and writes what the golden tests compare: for every position of a
// prompt but the last, which takes a step of its own, the logits of each head down the chain of their likeliest tokens.
//   hydra_head_tool MODEL HEADS --tokens FILE --logits FILE
// tokens: int32 [T]; logits: f32 [T - 1, heads, V]; standard output: one JSON line {"chains": [[…], …]}.
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/base/thread_role.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/decoder.h"
#include "core/speculate/heads/hydra_drafter.h"
#include "core/speculate/row_batch.h"
#include "tests/golden/draft_tool_parts.h"

namespace {

using namespace quire;
using golden::HeadOptions;
using golden::kBlockTokens;
using golden::Place;
using golden::read_tokens;

// Chains of one more guess each time: the head that ran last is another one.
std::vector<TokenId> draft(speculate::HydraDrafter& drafter, const speculate::Observed& observed, std::uint32_t vocab,
                           std::ostream& out) REQUIRES(engine_role) {
  const sample::Params greedy{.temperature = 0.0f};
  std::vector<TokenId> chain;
  std::vector<float> logits(vocab);
  for (std::uint32_t depth = 1; depth <= drafter.num_heads(); ++depth) {
    const speculate::Asked asked{.seq = observed.seq,
                                 .tokens = observed.tokens,
                                 .table = observed.table,
                                 .sampling = &greedy,
                                 .max_nodes = depth,
                                 .max_depth = depth};
    sample::TokenTree tree;
    drafter.propose({&asked, 1}, {&tree, 1});
    chain.clear();
    for (std::uint32_t i = 0; i < tree.size(); ++i) chain.push_back(tree.token(i));
    drafter.read_logits(1, logits);
    golden::write_floats(out, logits);
  }
  return chain;
}

void run(const HeadOptions& options) {
  const RoleScope engine(engine_role);
  const std::vector<TokenId> tokens = read_tokens(options.tokens_file);
  const auto length = static_cast<std::uint32_t>(tokens.size());
  const auto ops = cpu::make_cpu_ops({1, "auto", length});
  const auto files = model::ModelFiles::directory(options.model);
  const model::Decoder target(*ops, model::load_config(*files), *files, length);
  const auto head_files = model::ModelFiles::directory(options.head);
  const Place place(length / kBlockTokens + 1);

  speculate::RunnerLimits limits;
  limits.max_rows = length;
  limits.max_sequences = 1;
  limits.max_model_len = length;
  limits.block_tokens = kBlockTokens;
  limits.num_blocks = static_cast<std::uint32_t>(place.table.size());
  const speculate::HydraOptions chains{.width = 1, .max_depth = 64, .kv_dtype = backend::KvType::kF32};
  speculate::HydraDrafter drafter(*ops, target, *head_files, chains, limits);

  const speculate::Needs needs = drafter.needs();
  const model::Workspace workspace =
      golden::run_target(*ops, target, place, tokens, {.boundaries = needs.boundaries, .final_norm = needs.final_norm});

  std::ofstream out(options.logits_file, std::ios::binary);
  std::cout << "{\"chains\": [";
  for (std::uint32_t row = 0; row + 1 < length; ++row) {
    const speculate::Observed observed{.seq = SeqId(1),
                                       .tokens = std::span(tokens).first(row + 2),
                                       .first_position = row,
                                       .rows = {&row, 1},
                                       .table = std::span(place.table).first(row / kBlockTokens + 1)};
    drafter.observe({.sequences = {&observed, 1}, .states = workspace.states.get()});
    std::cout << (row == 0 ? "[" : ", [");
    const std::vector<TokenId> chain = draft(drafter, observed, target.config().vocab, out);
    for (std::size_t i = 0; i < chain.size(); ++i) std::cout << (i == 0 ? "" : ", ") << chain[i];
    std::cout << "]";
  }
  std::cout << "]}\n";
  if (!out.flush()) throw StartError("cannot write " + options.logits_file);
}

}  // namespace

int main(int argc, char** argv) { return quire::golden::run_head_tool("hydra_head_tool", argc, argv, run); }
