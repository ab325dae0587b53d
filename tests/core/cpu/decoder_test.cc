// A tiny decoder over Ops: its logits and choices are the same bits whatever runs it and however its rows are dealt
// into steps, and fused ops are their compositions.
#include <numeric>

#include "tests/core/cpu/tiny_decoder.h"

namespace quire::cpu::test::decoder_test {
namespace {

// Every row's logits and choice, sequence by sequence.
struct Outcome {
  std::vector<std::vector<float>> logits;
  std::vector<std::vector<TokenId>> tokens;
};

Outcome run(const DecoderConfig& config, std::span<const std::uint32_t> lengths, std::uint32_t chunk, bool together) {
  Decoder decoder(config);
  const Prompts prompts(lengths, config.block_tokens);
  Outcome outcome{std::vector<std::vector<float>>(lengths.size()), std::vector<std::vector<TokenId>>(lengths.size())};
  std::vector<std::uint32_t> all(lengths.size());
  std::iota(all.begin(), all.end(), 0u);
  const std::uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
  for (std::size_t turn = 0; turn < (together ? 1 : all.size()); ++turn) {
    const auto who =
        together ? std::span<const std::uint32_t>(all) : std::span<const std::uint32_t>(all).subspan(turn, 1);
    for (std::uint32_t first = 0; first < longest; first += chunk) {
      const OwnedBatch batch = make_step(prompts, first, chunk, config.block_tokens, who);
      if (batch.positions.empty()) continue;
      std::vector<backend::Choice> choices(batch.logits_rows.size());
      decoder.step(batch.view(), choices);
      const std::vector<float> logits = decoder.logits(static_cast<std::uint32_t>(choices.size()));
      std::size_t row = 0;
      std::size_t next = 0;
      for (const std::uint32_t s : who) {
        if (first >= prompts.tokens[s].size()) continue;
        for (std::uint32_t i = 0; i < batch.sequences[next].num_rows; ++i, ++row) {
          EXPECT_TRUE(choices[row].finite);
          outcome.tokens[s].push_back(choices[row].token);
          outcome.logits[s].insert(outcome.logits[s].end(), logits.begin() + static_cast<std::ptrdiff_t>(row * kVocab),
                                   logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * kVocab));
        }
        ++next;
      }
    }
  }
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b) {
  for (std::size_t s = 0; s < a.logits.size(); ++s) {
    EXPECT_TRUE(same_bits(a.logits[s], b.logits[s])) << "sequence " << s;
    EXPECT_EQ(a.tokens[s], b.tokens[s]) << "sequence " << s;
  }
}

TEST(Decoder, IsTheSameOnEveryInstructionSet) {
  const std::uint32_t lengths[] = {3, 40, 270};
  for (const Format dtype : {Format::kF32, Format::kBF16, Format::kF16}) {
    for (const KvType kv : {KvType::kF32, KvType::kBF16, KvType::kFp8, KvType::kInt8, KvType::kInt4}) {
      DecoderConfig config;
      config.dtype = dtype;
      config.kv = kv;
      config.isa = "scalar";
      const Outcome scalar = run(config, lengths, 100, true);
      for (const std::string& isa : vector_isas()) {
        SCOPED_TRACE(isa + " " + backend::name_of(dtype) + " kv " + backend::name_of(kv));
        config.isa = isa;
        expect_same(run(config, lengths, 100, true), scalar);
      }
    }
  }
}

TEST(Decoder, WithQuantisedWeightsIsTheSameWhateverRunsItAndHoweverRowsAreDealt) {
  const std::uint32_t lengths[] = {3, 40, 270};
  for (const backend::Format quantize : backend::kQuantizedFormats) {
    DecoderConfig config;
    config.quantize = quantize;
    config.isa = "scalar";
    const Outcome scalar = run(config, lengths, 300, false);
    for (const std::string& isa : vector_isas()) {
      SCOPED_TRACE(isa);
      config.isa = isa;
      config.threads = 1;
      for (const std::uint32_t chunk : {1u, 16u, 100u}) expect_same(run(config, lengths, chunk, true), scalar);
      config.threads = 3;
      config.fused = false;
      expect_same(run(config, lengths, 37, true), scalar);
      config.fused = true;
    }
  }
}

TEST(Decoder, IsTheSameForAnyNumberOfThreads) {
  const std::uint32_t lengths[] = {3, 40, 330};
  const Outcome one = run({}, lengths, 110, true);
  for (const std::uint32_t threads : {2u, 3u}) {
    DecoderConfig config;
    config.threads = threads;
    expect_same(run(config, lengths, 110, true), one);
  }
}

TEST(Decoder, IsTheSameHoweverRowsAreDealtIntoSteps) {
  const std::uint32_t lengths[] = {20, 5, 280};
  const Outcome whole = run({}, lengths, 300, false);
  for (const std::uint32_t chunk : {1u, 7u, 16u, 100u}) {
    SCOPED_TRACE(chunk);
    expect_same(run({}, lengths, chunk, true), whole);
    expect_same(run({}, lengths, chunk, false), whole);
  }
}

TEST(Decoder, IsTheSameForAnyBlockSize) {
  const std::uint32_t lengths[] = {20, 290};
  DecoderConfig wide;
  wide.block_tokens = 32;
  expect_same(run(wide, lengths, 64, true), run({}, lengths, 64, true));
}

TEST(Decoder, FusedOpsAreTheirCompositions) {
  const std::uint32_t lengths[] = {20, 37, 310};
  for (const bool whole_panels : {false, true}) {
    for (const KvType kv : {KvType::kBF16, KvType::kInt8, KvType::kInt4}) {
      DecoderConfig fused;
      fused.whole_panels = whole_panels;
      fused.kv = kv;
      DecoderConfig plain = fused;
      plain.fused = false;
      const Outcome expected = run(plain, lengths, 310, true);
      for (const std::string& isa : supported_isas()) {
        for (const std::uint32_t threads : {1u, 3u}) {
          SCOPED_TRACE(isa + " kv " + backend::name_of(kv) + " threads " + std::to_string(threads));
          fused.isa = isa;
          fused.threads = threads;
          expect_same(run(fused, lengths, 100, true), expected);
        }
      }
      fused.isa = "auto";
      for (const std::uint32_t chunk : {1u, 13u, 310u}) expect_same(run(fused, lengths, chunk, true), expected);
    }
  }
}

TEST(Decoder, FusedOpsWithQuantisedWeightsAreTheirCompositions) {
  const std::uint32_t lengths[] = {20, 310};
  for (const backend::Format quantize : backend::kQuantizedFormats) {
    DecoderConfig fused;
    fused.whole_panels = true;
    fused.quantize = quantize;
    fused.threads = 2;
    DecoderConfig plain = fused;
    plain.fused = false;
    expect_same(run(fused, lengths, 100, true), run(plain, lengths, 310, true));
  }
}

}  // namespace
}  // namespace quire::cpu::test::decoder_test
