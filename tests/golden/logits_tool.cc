// Runs a model directory on the CPU backend and writes what the golden tests compare: the logits of every position of a
// prompt, and its greedy continuation through the runner.
//   logits_tool MODEL --tokens FILE --logits FILE [--isa NAME] [--threads N] [--kv f32|bf16|fp8|int8|int4] [--chunk N]
//   [--greedy N] [--routes FILE]
// tokens: int32; logits: f32 [T, V]; routes: int32, the experts of mixtures [layers with experts, T, k], ascending in each
// row; standard output: one JSON line {"mode": …, "frequencies": […], "attention_factor":
// …, "greedy": […]}.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/base/thread_role.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/arch/config.h"
#include "core/model/decoder.h"
#include "core/model/gguf/gguf_files.h"
#include "core/model/quantized/decoder_checkpoint.h"
#include "core/model/rope/rope.h"
#include "core/model/run/decoder_runner.h"
#include "core/model/run/numeric_mode.h"
#include "core/model/weight_checks.h"
#include "tools/ops/forwarding_ops.h"

namespace {

using namespace quire;

constexpr std::uint32_t kBlockTokens = 16;

struct Options {
  std::string model, tokens_file, logits_file, routes_file, isa = "auto", kv = "f32", activations = "int8";
  std::uint32_t threads = 2, chunk = 64, greedy = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("logits of a prompt");
  app.add_option("model", options.model)->required();
  app.add_option("--tokens", options.tokens_file)->required();
  app.add_option("--logits", options.logits_file)->required();
  app.add_option("--routes", options.routes_file);
  app.add_option("--isa", options.isa);
  app.add_option("--threads", options.threads);
  app.add_option("--kv", options.kv);
  app.add_option("--activations", options.activations)->check(CLI::IsMember({"auto", "int8", "f32"}));
  app.add_option("--chunk", options.chunk)->check(CLI::Range(1, 512));
  app.add_option("--greedy", options.greedy);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

// Writes down the experts of every row, layer by layer.
class RoutedOps final : public tools::ForwardingOps {
 public:
  using ForwardingOps::ForwardingOps;

  void route(backend::Buffer& logits, const backend::RouteRule& rule, const backend::RouteVectors& vectors,
             std::uint32_t rows, backend::Routes& routes) override {
    ForwardingOps::route(logits, rule, vectors, rows, routes);
    std::vector<std::uint32_t> experts(std::size_t{rows} * rule.top_k);
    std::vector<float> weights(experts.size());
    inner().read_routes(routes, rows, experts, weights);
    calls_.push_back(std::move(experts));
  }
  // Calls come layer by layer, step by step.
  void write(const std::string& path, std::size_t num_layers) const {
    std::ofstream out(path, std::ios::binary);
    for (std::size_t layer = 0; layer < num_layers; ++layer) {
      for (std::size_t call = layer; call < calls_.size(); call += num_layers) {
        out.write(reinterpret_cast<const char*>(calls_[call].data()),
                  static_cast<std::streamsize>(calls_[call].size() * sizeof(std::uint32_t)));
      }
    }
    if (!out.flush()) throw StartError("cannot write " + path);
  }

 protected:
  void op_begins(Op) override {}
  void op_ends(Op) override {}

 private:
  std::vector<std::vector<std::uint32_t>> calls_;
};

backend::KvType kv_type_of(const std::string& name) {
  for (const backend::KvType type : backend::kAllKvTypes) {
    if (name == backend::name_of(type)) return type;
  }
  throw StartError("--kv " + name + ": no such type");
}

std::vector<TokenId> read_tokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  std::copy_n(bytes.data(), tokens.size() * sizeof(TokenId), reinterpret_cast<char*>(tokens.data()));
  if (tokens.empty()) throw StartError(path + " holds no tokens");
  return tokens;
}

// Blocks in descending order, so that a mistake between positions and slots shows.
std::vector<BlockId> block_table(std::uint32_t num_blocks) {
  std::vector<BlockId> table;
  for (std::uint32_t i = 0; i < num_blocks; ++i) table.emplace_back(num_blocks - 1 - i);
  return table;
}

struct Rows {
  std::vector<std::uint32_t> positions, slots;
};

Rows rows_of(std::uint32_t first, std::uint32_t count, const std::vector<BlockId>& table) {
  Rows rows;
  for (std::uint32_t position = first; position < first + count; ++position) {
    rows.positions.push_back(position);
    rows.slots.push_back(table[position / kBlockTokens].value * kBlockTokens + position % kBlockTokens);
  }
  return rows;
}

// Every row speaks: past the runner, whose sequences speak with their last row only.
void write_logits(backend::Ops& ops, const model::Decoder& decoder, const std::vector<TokenId>& tokens,
                  const Options& options, backend::KvType kv_dtype) {
  const std::uint32_t vocab = decoder.config().vocab;
  const auto num_blocks = static_cast<std::uint32_t>(tokens.size() / kBlockTokens + 1);
  const std::vector<BlockId> table = block_table(num_blocks);
  auto cache = ops.make_kv(decoder.config().kv_shape(kBlockTokens, num_blocks, kv_dtype));
  model::Workspace workspace = decoder.make_workspace(options.chunk, options.chunk);
  std::ofstream out(options.logits_file, std::ios::binary);
  for (std::size_t done = 0; done < tokens.size();) {
    const auto first = static_cast<std::uint32_t>(done);
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(options.chunk, tokens.size() - done));
    const Rows rows = rows_of(first, count, table);
    const backend::SequenceRows sequence{0, count, first, 0, num_blocks};
    std::vector<backend::LogitsRow> logits_rows(count);
    for (std::uint32_t row = 0; row < count; ++row) logits_rows[row] = {row, first + row + 1, {.temperature = 0.0f}};
    backend::Batch batch{
        std::span(tokens).subspan(done, count), rows.positions, rows.slots, {&sequence, 1}, table, logits_rows};
    decoder.forward(batch, *cache, workspace);
    std::vector<backend::Choice> choices(count);
    ops.collect(choices);
    std::vector<float> logits(std::size_t{count} * vocab);
    ops.read(*workspace.logits, 0, count, logits);
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
    done += count;
  }
  if (!out.flush()) throw StartError("cannot write " + options.logits_file);
}

TokenId run_step(model::DecoderRunner& runner, const std::vector<TokenId>& tokens, std::uint32_t first,
                 std::uint32_t count, const std::vector<BlockId>& table) REQUIRES(engine_role) {
  flow::StepPlan plan;
  const Rows rows = rows_of(first, count, table);
  plan.tokens.assign(tokens.begin() + first, tokens.begin() + first + count);
  plan.positions = rows.positions;
  plan.slots = rows.slots;
  plan.block_tables = table;
  flow::PlannedSequence sequence;
  sequence.seq = SeqId(1);
  sequence.num_rows = count;
  sequence.first_position = first;
  sequence.num_table = static_cast<std::uint32_t>(table.size());
  sequence.samples = first + count == tokens.size();
  sequence.sampling.temperature = 0.0f;
  plan.sequences = {sequence};
  runner.submit(plan);
  const std::span<const flow::StepChoice> choices = runner.collect();
  return choices.empty() ? -1 : choices[0].token;
}

std::vector<TokenId> continue_greedily(backend::Ops& ops, const model::Decoder& decoder, std::vector<TokenId> tokens,
                                       const Options& options, backend::KvType kv_dtype) REQUIRES(engine_role) {
  const std::size_t prompt = tokens.size();
  model::RunnerLimits limits;
  limits.max_rows = options.chunk;
  limits.max_sequences = 1;
  limits.block_tokens = kBlockTokens;
  limits.num_blocks = static_cast<std::uint32_t>((prompt + options.greedy) / kBlockTokens + 1);
  limits.kv_dtype = kv_dtype;
  model::DecoderRunner runner(ops, decoder, limits);
  const std::vector<BlockId> table = block_table(limits.num_blocks);
  for (std::uint32_t done = 0; tokens.size() < prompt + options.greedy;) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(options.chunk, tokens.size() - done));
    const TokenId token = run_step(runner, tokens, done, count, table);
    done += count;
    if (token >= 0) tokens.push_back(token);
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

template <typename Number>
void print_list(const std::vector<Number>& numbers) {
  std::cout << "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) std::cout << (i == 0 ? "" : ", ") << numbers[i];
  std::cout << "]";
}

void run(const Options& options) {
  const RoleScope engine(engine_role);
  const std::vector<TokenId> tokens = read_tokens(options.tokens_file);
  const auto ops =
      std::make_unique<RoutedOps>(cpu::make_cpu_ops({options.threads, options.isa, std::max(options.chunk, 1u)}));
  const auto files = model::open_model_files(options.model);
  const model::ModelSpec config = model::fitted(model::load_config(*files), model::open_decoder(*files));
  const auto length = static_cast<std::uint32_t>(tokens.size() + options.greedy);
  using enum model::BlockActivation;
  const auto activations = options.activations == "f32" ? kF32 : options.activations == "int8" ? kInt8 : kInt8PerRow;
  const model::Decoder decoder(*ops, config, *files, length, {.blocks = activations});
  const backend::KvType kv_dtype = kv_type_of(options.kv);

  write_logits(*ops, decoder, tokens, options, kv_dtype);
  if (!options.routes_file.empty()) {
    const auto mixes = [](const model::LayerSpec& layer) { return layer.experts.has_value(); };
    ops->write(options.routes_file, static_cast<std::size_t>(std::ranges::count_if(config.layers, mixes)));
  }
  const std::vector<TokenId> greedy = continue_greedily(*ops, decoder, tokens, options, kv_dtype);
  std::cout << std::setprecision(9) << "{\"mode\": \""
            << model::numeric_mode(config, decoder.checkpoint_digest(), ops->description(), decoder.weight_format(),
                                   kv_dtype, decoder.block_activation())
            << "\", \"ropes\": [";
  for (std::uint32_t table = 0; table < config.ropes.size(); ++table) {
    const auto user = std::ranges::find_if(
        config.layers, [&](const model::LayerSpec& layer) { return layer.attention.rope == table; });
    const model::LayerSpec& layer = user == config.layers.end() ? config.layers.front() : *user;
    const model::RopeFrequencies rope = model::rope_frequencies(config.ropes[table], layer.attention.rope_head_dim());
    std::cout << (table == 0 ? "" : ", ") << "{\"frequencies\": ";
    print_list(rope.inverse);
    std::cout << ", \"attention_factor\": " << rope.attention_factor << "}";
  }
  std::cout << "], \"greedy\": ";
  print_list(greedy);
  std::cout << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "logits_tool: " << error.what() << "\n";
    return 2;
  }
  return 0;
}
