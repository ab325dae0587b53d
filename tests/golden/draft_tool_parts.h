// What the tools that run draft heads for the golden tests share: their command line, a prompt from a file, where its rows lie, and
// the states that its target leaves.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/start_error.h"
#include "core/model/decoder.h"
#include "core/speculate/row_batch.h"

namespace quire::golden {

inline constexpr std::uint32_t kBlockTokens = 16;

inline std::vector<TokenId> read_tokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  std::copy_n(bytes.data(), tokens.size() * sizeof(TokenId), reinterpret_cast<char*>(tokens.data()));
  if (tokens.size() < 2) throw StartError(path + " holds fewer than two tokens");
  return tokens;
}

// Blocks in descending order, so that a mistake between positions and slots shows.
struct Place {
  explicit Place(std::uint32_t num_blocks) {
    for (std::uint32_t i = 0; i < num_blocks; ++i) table.emplace_back(num_blocks - 1 - i);
  }
  std::uint32_t slot(std::uint32_t position) const {
    return table[position / kBlockTokens].value * kBlockTokens + position % kBlockTokens;
  }
  std::vector<BlockId> table;
};

// NAME MODEL HEAD --tokens FILE --logits FILE [--steps N]
struct HeadOptions {
  std::string model, head, tokens_file, logits_file;
  std::uint32_t steps = 0;
};

template <typename Run>
int run_head_tool(const std::string& name, int argc, char** argv, const Run& run) {
  HeadOptions options;
  CLI::App app("logits of draft heads");
  app.add_option("model", options.model)->required();
  app.add_option("head", options.head)->required();
  app.add_option("--tokens", options.tokens_file)->required();
  app.add_option("--logits", options.logits_file)->required();
  app.add_option("--steps", options.steps);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
    return 2;
  }
  return 0;
}

// The whole prompt in one step, which leaves its states in the workspace.
inline model::Workspace run_target(backend::Ops& ops, const model::Decoder& target, const Place& place,
                                   std::span<const TokenId> tokens, const model::Captures& captures) {
  const auto num_tokens = static_cast<std::uint32_t>(tokens.size());
  speculate::RowBatch batch;
  batch.begin_sequence(place.table);
  for (std::uint32_t i = 0; i < num_tokens; ++i) batch.add_row(tokens[i], i, place.slot(i));
  auto cache = ops.make_kv(
      target.config().kv_shape(kBlockTokens, static_cast<std::uint32_t>(place.table.size()), backend::KvType::kF32));
  model::Workspace workspace = target.make_workspace(num_tokens, 1, captures);
  target.forward(batch.batch(), *cache, workspace);
  ops.collect({});
  return workspace;
}

inline void write_floats(std::ostream& out, std::span<const float> values) {
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace quire::golden
