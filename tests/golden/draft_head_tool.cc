// Runs a draft head beside its target on the CPU backend and writes what the golden tests compare: the head's logits
// for every position of a prompt, from the target's own states, and then those of a chain of its likeliest tokens, from
//   its own. draft_head_tool MODEL HEAD --tokens FILE --logits FILE [--steps N]
// tokens: int32 [T]; logits: f32 [T - 1 + N, Vd]; standard output: one JSON line {"kind": …, "boundaries": […],
// "chain": […]}, the chain's tokens in the target's numbers.
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/base/thread_role.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/decoder.h"
#include "core/speculate/heads/draft_head.h"
#include "core/speculate/row_batch.h"
#include "tests/golden/draft_tool_parts.h"

namespace {

using namespace quire;
using golden::HeadOptions;
using golden::kBlockTokens;
using golden::Place;
using golden::read_tokens;

void run(const HeadOptions& options) {
  const RoleScope engine(engine_role);
  const std::vector<TokenId> tokens = read_tokens(options.tokens_file);
  const auto num_tokens = static_cast<std::uint32_t>(tokens.size());
  const std::uint32_t length = num_tokens + options.steps;
  const auto ops = cpu::make_cpu_ops({1, "auto", length});
  const auto files = model::ModelFiles::directory(options.model);
  const model::Decoder target(*ops, model::load_config(*files), *files, length);
  const auto head_files = model::ModelFiles::directory(options.head);
  const speculate::HeadConfig config = speculate::load_head_config(*head_files, target.config());
  const Place place(length / kBlockTokens + 1);

  speculate::HeadLimits limits;
  limits.max_rows = length;
  limits.max_logits_rows = length;
  limits.max_model_len = length;
  limits.block_tokens = kBlockTokens;
  limits.num_blocks = static_cast<std::uint32_t>(place.table.size());
  limits.kv_dtype = backend::KvType::kF32;
  speculate::DraftHead head(*ops, target, config, speculate::load_head_weights(*ops, config, *head_files, std::nullopt),
                            limits);

  const model::Workspace workspace = golden::run_target(
      *ops, target, place, tokens, {.boundaries = config.boundaries, .final_norm = config.boundaries.empty()});

  std::ofstream out(options.logits_file, std::ios::binary);
  const auto write = [&](std::uint32_t rows) {
    std::vector<float> logits(std::size_t{rows} * head.logits_width());
    head.read_logits(rows, logits);
    golden::write_floats(out, logits);
  };
  std::vector<std::uint32_t> rows(num_tokens - 1);
  std::iota(rows.begin(), rows.end(), 0u);
  head.take_states(*workspace.states, rows);
  head.begin_with_features();
  speculate::RowBatch batch;
  batch.begin_sequence(place.table);
  for (std::uint32_t i = 0; i + 1 < num_tokens; ++i) {
    batch.add_row(tokens[i + 1], i, place.slot(i));
    batch.add_logits_row(1);
  }
  std::vector<backend::Choice> choices(num_tokens - 1);
  head.run(batch.batch(), choices);
  write(num_tokens - 1);
  TokenId newest = head.token_of(choices.back().token);

  std::cout << "{\"kind\": \"" << speculate::name_of(config.kind) << "\", \"boundaries\": [";
  for (std::size_t i = 0; i < config.boundaries.size(); ++i) std::cout << (i ? ", " : "") << config.boundaries[i];
  std::cout << "], \"chain\": [" << newest;
  choices.resize(1);
  std::uint32_t last_row = num_tokens - 2;
  for (std::uint32_t step = 0; step < options.steps; ++step) {
    const std::uint32_t position = num_tokens - 1 + step;
    head.begin_with_outputs({&last_row, 1});
    batch.clear();
    batch.begin_sequence(place.table);
    batch.add_row(newest, position, place.slot(position));
    batch.add_logits_row(1);
    head.run(batch.batch(), choices);
    write(1);
    last_row = 0;
    newest = head.token_of(choices[0].token);
    std::cout << ", " << newest;
  }
  std::cout << "]}\n";
  if (!out.flush()) throw StartError("cannot write " + options.logits_file);
}

}  // namespace

int main(int argc, char** argv) { return quire::golden::run_head_tool("draft_head_tool", argc, argv, run); }
