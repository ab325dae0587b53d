// After start no step allocates: operator new is counted while steps of every size run.
#include "tests/core/cpu/tiny_decoder.h"
#include "tests/support/allocation_counter.h"

namespace quire::cpu::test::allocation_test {
namespace {

using testing::num_allocations;

TEST(Steps, AllocateNothingNotEvenTheFirst) {
  for (const std::uint32_t threads : {1u, 2u, 3u}) {
    DecoderConfig config;
    config.threads = threads;
    if (threads == 2) config.quantize = backend::Format::kW8A8;
    if (threads == 3) config.kv = KvType::kInt4;
    Decoder decoder(config);
    const std::uint32_t lengths[] = {300, 80, 2};
    const std::uint32_t all[] = {0, 1, 2};
    const Prompts prompts(lengths, config.block_tokens);
    for (const std::uint32_t chunk : {1u, 30u, 130u}) {
      for (std::uint32_t first = 0; first < 300; first += chunk) {
        OwnedBatch batch = make_step(prompts, first, chunk, config.block_tokens, all);
        for (backend::LogitsRow& logits_row : batch.logits_rows) {
          logits_row.params.logprob = true;
          logits_row.params.num_top = sample::kMaxTop;
          if (logits_row.row % 2 == 1) logits_row.given = 1;
        }
        std::vector<backend::Choice> choices(batch.logits_rows.size());
        const long before = num_allocations.load();
        decoder.step(batch.view(), choices);
        ASSERT_EQ(num_allocations.load(), before) << "chunk " << chunk << " at " << first;
      }
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::allocation_test
