// Sequences that begin with the same blocks are attended together: the same bits as with blocks of their own.
#include "tests/core/cpu/attention_lab.h"

namespace quire::cpu::test::attention_sharing_test {
namespace {

const std::vector<LabShape>& sharing_shapes() {
  static const std::vector<LabShape> all = {
      {4, 2, 16, 16, KvType::kF32, 0},
      {3, 1, 18, 64, KvType::kBF16, 0},
      {4, 2, 8, 256, KvType::kBF16, 0},
      {14, 1, 8, 16, KvType::kBF16, 0},
      {2, 2, 18, 64, KvType::kFp8, 0},
      {4, 2, 16, 16, KvType::kInt8, 0},
      {4, 2, 18, 16, KvType::kInt4, 0},
      {3, 1, 8, 256, KvType::kInt4, 0},
      {4, 2, 16, 16, KvType::kBF16, 300},
      {4, 2, 8, 64, KvType::kBF16, 900},
      {.num_heads = 5, .num_kv_heads = 1, .head_dim = 44, .type = KvType::kBF16, .latent = 34},
  };
  return all;
}

// A tree: 1 begins with three spans of 0, 2 with one of both, 4 with two of 2; 3 with nobody.
struct Fork {
  std::uint32_t from;
  std::uint32_t shared;
};
constexpr Fork kForks[] = {{0, 0}, {0, 768}, {1, 256}, {3, 0}, {2, 512}};
constexpr std::uint32_t kLengths[] = {900, 850, 700, 300, 620};
constexpr std::uint32_t kSteps = 24;  // rows of each that come in steps with the others

std::vector<LabSequence> tree(const LabShape& shape) {
  auto sequences = lab_sequences(shape, kLengths, 77);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const LabSequence& from = sequences[kForks[s].from];
    const std::size_t count = std::size_t{kForks[s].shared} * shape.width();
    std::copy_n(from.rows.begin(), count, sequences[s].rows.begin());
    std::copy_n(from.stored.begin(), count, sequences[s].stored.begin());
  }
  return sequences;
}

struct Result {
  std::vector<std::vector<float>> rows;  // of each sequence its last kSteps
  std::vector<std::vector<std::uint64_t>> accumulated_scores;
};

// Each by itself up to its last kSteps rows, in blocks of its own or in those that it shares; then all together, some a
// row at a time, others several.
Result run(const std::string& isa, std::uint32_t threads, const LabShape& shape,
           const std::vector<LabSequence>& sequences, bool sharing) {
  const auto ops = make_ops(isa, threads, 1000);
  Lab lab(*ops, shape, sequences, 1);
  lab.poison(NAN);
  const auto count = static_cast<std::uint32_t>(sequences.size());
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::uint32_t first = sharing ? kForks[s].shared : 0;
    if (first != 0) {
      std::vector<BlockId> table = lab.table(s);
      std::copy_n(lab.table(kForks[s].from).begin(), first / shape.block_tokens, table.begin());
      lab.set_table(s, table);
    }
    for (std::uint32_t p = first; p < sequences[s].length - kSteps; p = p / 256 * 256 + 256) {
      const LabRows rows[] = {{s, p, std::min(sequences[s].length - kSteps, p / 256 * 256 + 256) - p}};
      lab.step(rows);
    }
  }
  for (std::uint32_t done = 0; done < kSteps;) {
    const std::uint32_t num_rows = done < 2 ? 1 : done < 9 ? 7 : 15;
    std::vector<LabRows> rows;
    for (std::uint32_t s = 0; s < count; ++s) rows.push_back({s, sequences[s].length - kSteps + done, num_rows});
    lab.step(rows);
    done += num_rows;
  }
  Result result;
  for (const std::vector<float>& out : lab.out()) {
    result.rows.emplace_back(out.end() - static_cast<std::ptrdiff_t>(kSteps * shape.out_width()), out.end());
  }
  for (std::size_t s = 0; s < count; ++s) {
    if (sequences[s].accumulated_scores) result.accumulated_scores.push_back(lab.accumulated_scores()[s]);
  }
  return result;
}

void expect_same(const Result& a, const Result& b) {
  for (std::size_t s = 0; s < a.rows.size(); ++s) EXPECT_TRUE(same_bits(a.rows[s], b.rows[s])) << "sequence " << s;
}

TEST(AttendShared, EqualsPrivateBlocksBitForBitOnEveryInstructionSet) {
  for (const LabShape& shape : sharing_shapes()) {
    const auto sequences = tree(shape);
    const Result expected = run("auto", 1, shape, sequences, false);
    for (const std::string& isa : supported_isas()) {
      SCOPED_TRACE(isa + " " + shape.text());
      expect_same(run(isa, 1, shape, sequences, true), expected);
    }
  }
}

TEST(AttendShared, EqualsTheContract) {
  for (const LabShape& shape : sharing_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto sequences = tree(shape);
    const Result got = run("auto", 2, shape, sequences, true);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      for (const std::uint32_t i : {0u, 1u, 5u, 23u}) {
        const std::vector<float> row = contract_f32(shape, sequences[s], sequences[s].length - kSteps + i);
        EXPECT_TRUE(same_bits(std::span(got.rows[s]).subspan(i * row.size(), row.size()), row)) << s << " " << i;
      }
    }
  }
}

TEST(AttendShared, IsTheSameForAnyNumberOfThreads) {
  for (const LabShape& shape : sharing_shapes()) {
    SCOPED_TRACE(shape.text());
    const auto sequences = tree(shape);
    const Result expected = run("auto", 1, shape, sequences, false);
    for (const std::uint32_t threads : {2u, 3u, 7u})
      expect_same(run("auto", threads, shape, sequences, true), expected);
  }
}

TEST(AttendShared, ANanInOneSequencesOwnPartTouchesNoOther) {
  for (const LabShape& shape : sharing_shapes()) {
    SCOPED_TRACE(shape.text());
    auto sequences = tree(shape);
    const Result clean = run("auto", 1, shape, sequences, true);
    const std::size_t position = 800;  // of sequence 1, whose last span begins at 768
    std::fill_n(sequences[1].rows.begin() + static_cast<std::ptrdiff_t>(position * shape.width()), shape.width(), NAN);
    const Result poisoned = run("auto", 1, shape, sequences, true);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      if (s == 1) continue;
      EXPECT_TRUE(same_bits(poisoned.rows[s], clean.rows[s])) << "sequence " << s;
    }
    for (const float value : poisoned.rows[1]) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(AttendShared, AccumulatedScoresAreGivenWhereTheyAreWanted) {
  for (const LabShape& shape : sharing_shapes()) {
    SCOPED_TRACE(shape.text());
    auto sequences = tree(shape);
    sequences[1].accumulated_scores = true;
    const Result expected = run("auto", 1, shape, sequences, false);
    const Result got = run("auto", 2, shape, sequences, true);
    expect_same(got, expected);
    const std::uint32_t first = kForks[1].shared / 16;  // whose rows the sequence itself had
    ASSERT_EQ(got.accumulated_scores[0].size(), expected.accumulated_scores[0].size());
    for (std::size_t i = first; i < got.accumulated_scores[0].size(); ++i)
      EXPECT_EQ(got.accumulated_scores[0][i], expected.accumulated_scores[0][i]) << i;
  }
}

TEST(AttendShared, WhoLostGroupsLosesThemAlone) {
  for (const LabShape& shape : {LabShape{4, 2, 16, 256, KvType::kF32, 0}, LabShape{4, 2, 8, 256, KvType::kInt8, 0}}) {
    SCOPED_TRACE(shape.text());
    auto sequences = tree(shape);
    // Half the groups of each of its spans before: every block is still there, since 0 holds it anyway.
    sequences[1].kept = {{}, {0x5a5b}, {0x5a5b, 0xff01}, {0x5a5b, 0xff01, 0x00f0}};
    const Result expected = run("auto", 1, shape, sequences, false);
    expect_same(run("auto", 2, shape, sequences, true), expected);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const std::vector<float> row = contract_f32(shape, sequences[s], sequences[s].length - 1);
      EXPECT_TRUE(same_bits(std::span(expected.rows[s]).last(row.size()), row)) << s;
    }
  }
}

}  // namespace
}  // namespace quire::cpu::test::attention_sharing_test
