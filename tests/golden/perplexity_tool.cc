// What each KV type, or each weight type, does to a model's predictions: reads tokens in windows, every window alone,
// and says how surprised the model is at each next token.
//   perplexity_tool MODEL --tokens FILE [--weights] [--window N] [--chunk N] [--threads N]
// tokens: int32. Standard output: one JSON line for each KV type, or with --weights for the checkpoint's own weights,
// int8, int4 and fp8, K and V in f32: {"weights", "packed_bytes", "kv", "bytes_per_token", "predicted", "loss",
// "late_loss", "late_predicted"}; losses are means in nats, "late" those of the second half of the windows.
#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/start_error.h"
#include "core/cpu/cpu_ops.h"
#include "core/model/arch/config.h"
#include "core/model/decoder.h"
#include "core/model/gguf/gguf_files.h"

namespace {

using namespace quire;

constexpr std::uint32_t kBlockTokens = 16;

struct Options {
  std::string model, tokens_file, kv, activations = "int8";
  std::uint32_t window = 512, chunk = 128, threads = 2, early = 0;
  bool weights = false;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("perplexity by KV type or weight type");
  app.add_option("model", options.model)->required();
  app.add_option("--tokens", options.tokens_file)->required();
  app.add_flag("--weights", options.weights);
  app.add_option("--kv", options.kv);  // one type; empty: all
  app.add_option("--activations", options.activations)->check(CLI::IsMember({"auto", "int8", "f32"}));
  app.add_option("--early", options.early);  // predictions of a window that are not late; 0: half of them
  app.add_option("--window", options.window)->check(CLI::Range(2, 1 << 20));
  app.add_option("--chunk", options.chunk)->check(CLI::Range(1, 512));
  app.add_option("--threads", options.threads);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

std::vector<TokenId> read_tokens(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  std::copy_n(bytes.data(), tokens.size() * sizeof(TokenId), reinterpret_cast<char*>(tokens.data()));
  return tokens;
}

// -log of the softmax at `token`.
double loss_of(std::span<const float> logits, TokenId token) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return std::log(sum) + highest - logits[static_cast<std::size_t>(token)];
}

class Measurement {
 public:
  Measurement(backend::Ops& ops, const model::Decoder& decoder, const Options& options, backend::KvType type)
      : ops_(ops), decoder_(decoder), options_(options) {
    const std::uint32_t num_blocks = (options.window + kBlockTokens - 1) / kBlockTokens;
    backend::KvShape shape = decoder.config().kv_shape(kBlockTokens, num_blocks, type);
    shape.num_residual_groups = 1;
    cache_ = ops.make_kv(shape);
    workspace_ = decoder.make_workspace(options.chunk, options.chunk);
    for (std::uint32_t i = 0; i < num_blocks; ++i) table_.emplace_back(i);
  }

  // Losses of tokens 1.. of the window.
  std::vector<double> losses(std::span<const TokenId> window) {
    const std::uint32_t vocab = decoder_.config().vocab;
    std::vector<double> out;
    for (std::uint32_t first = 0; first < window.size(); first += options_.chunk) {
      const auto count = std::min(options_.chunk, static_cast<std::uint32_t>(window.size()) - first);
      std::vector<std::uint32_t> positions(count);
      std::iota(positions.begin(), positions.end(), first);  // which are the slots too
      const backend::SequenceRows sequence{0, count, first, 0, static_cast<std::uint32_t>(table_.size())};
      std::vector<backend::LogitsRow> logits_rows(count);
      for (std::uint32_t row = 0; row < count; ++row) logits_rows[row] = {row, first + row + 1, {.temperature = 0.0f}};
      decoder_.forward({window.subspan(first, count), positions, positions, {&sequence, 1}, table_, logits_rows},
                       *cache_, workspace_);
      std::vector<float> logits(std::size_t{count} * vocab);
      ops_.read(*workspace_.logits, 0, count, logits);
      for (std::uint32_t row = 0; row < count && first + row + 1 < window.size(); ++row) {
        out.push_back(loss_of(std::span(logits).subspan(std::size_t{row} * vocab, vocab), window[first + row + 1]));
      }
    }
    return out;
  }

  std::size_t bytes_per_token() const { return cache_->block_bytes() / kBlockTokens; }

 private:
  backend::Ops& ops_;
  const model::Decoder& decoder_;
  const Options& options_;
  std::unique_ptr<backend::KvCache> cache_;
  model::Workspace workspace_;
  std::vector<BlockId> table_;
};

void measure(backend::Ops& ops, const model::Decoder& decoder, const Options& options, backend::KvType type,
             std::span<const TokenId> tokens) {
  Measurement measurement(ops, decoder, options, type);
  double loss = 0;
  double late_loss = 0;
  std::size_t predicted = 0;
  std::size_t late_predicted = 0;
  for (std::size_t begin = 0; begin + options.window <= tokens.size(); begin += options.window) {
    const auto losses = measurement.losses(tokens.subspan(begin, options.window));
    const std::size_t early = options.early == 0 ? losses.size() / 2 : options.early;
    const auto middle = losses.begin() + static_cast<std::ptrdiff_t>(std::min(early, losses.size()));
    loss += std::accumulate(losses.begin(), losses.end(), 0.0);
    late_loss += std::accumulate(middle, losses.end(), 0.0);
    predicted += losses.size();
    late_predicted += static_cast<std::size_t>(losses.end() - middle);
  }
  std::cout << std::setprecision(9) << "{\"weights\": \"" << backend::name_of(decoder.weight_format())
            << "\", \"packed_bytes\": " << decoder.packed_bytes() << ", \"kv\": \"" << backend::name_of(type)
            << "\", \"bytes_per_token\": " << measurement.bytes_per_token() << ", \"predicted\": " << predicted
            << ", \"loss\": " << loss / static_cast<double>(predicted) << ", \"late_predicted\": " << late_predicted
            << ", \"late_loss\": " << late_loss / static_cast<double>(late_predicted) << "}" << std::endl;
}

void run(const Options& options) {
  const std::vector<TokenId> tokens = read_tokens(options.tokens_file);
  if (tokens.size() < options.window) throw StartError(options.tokens_file + " holds less than one window");
  const auto ops = cpu::make_cpu_ops({options.threads, "auto", options.chunk});
  const auto files = model::open_model_files(options.model);
  const model::ModelSpec config = model::load_config(*files);
  if (options.weights) {
    const auto measure_quantised = [&](std::optional<backend::Format> quantize) {
      const model::Decoder decoder(*ops, config, *files, options.window, {.quantize = quantize});
      measure(*ops, decoder, options, backend::KvType::kF32, tokens);
    };
    measure_quantised(std::nullopt);
    for (const backend::Format format : backend::kQuantizedFormats) measure_quantised(format);
    return;
  }
  using enum model::BlockActivation;
  const auto activations = options.activations == "f32" ? kF32 : options.activations == "int8" ? kInt8 : kInt8PerRow;
  const model::Decoder decoder(*ops, config, *files, options.window, {.blocks = activations});
  for (const backend::KvType type : backend::kAllKvTypes) {
    if (options.kv.empty() || options.kv == backend::name_of(type)) {
      measure(*ops, decoder, options, type, tokens);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "perplexity_tool: " << error.what() << "\n";
    return 2;
  }
  return 0;
}
