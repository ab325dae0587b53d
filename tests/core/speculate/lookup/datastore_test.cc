#include "core/speculate/lookup/datastore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/support/temporary_file.h"

namespace quire::speculate::datastore_test {
namespace {

using test::TemporaryFile;
using ::testing::HasSubstr;

using Tokens = std::vector<TokenId>;

constexpr std::uint64_t kKey = 0x1234;

std::vector<Tokens> random_texts(std::size_t count, int vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tokens> texts(count);
  for (Tokens& text : texts) {
    text.resize(random() % 60);
    for (TokenId& token : text) token = static_cast<TokenId>(random() % vocab);
  }
  return texts;
}

Datastore store_of(const std::vector<Tokens>& texts, const TemporaryFile& file) {
  DatastoreBuilder builder;
  for (const Tokens& text : texts) EXPECT_TRUE(builder.add(text));
  EXPECT_TRUE(builder.write(file.path(), kKey).ok());
  Result<Datastore> store = Datastore::open(file.path(), kKey);
  EXPECT_TRUE(store.ok()) << (store ? "" : store.error().message);
  return *std::move(store);
}

std::string why_not(const std::string& path, std::uint64_t key = kKey) {
  const Result<Datastore> store = Datastore::open(path, key);
  return store ? "it is good" : store.error().message;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// All that follows the run anywhere, to the end of its text.
std::vector<Tokens> naive(const std::vector<Tokens>& texts, const Tokens& run) {
  std::vector<Tokens> out;
  for (const Tokens& text : texts) {
    for (std::size_t i = 0; i + run.size() <= text.size(); ++i) {
      if (std::equal(run.begin(), run.end(), text.begin() + i))
        out.emplace_back(text.begin() + i + run.size(), text.end());
    }
  }
  std::ranges::sort(out);
  return out;
}

std::vector<Tokens> found(const Datastore& store, const Tokens& run) {
  const Datastore::Range range = store.find(run);
  std::vector<Tokens> out(range.count);
  for (std::uint32_t i = 0; i < range.count; ++i) {
    for (auto ahead = static_cast<std::uint32_t>(run.size());; ++ahead) {
      const TokenId token = store.at(range.first + i, ahead);
      if (token == Datastore::kEnd) break;
      out[i].push_back(token);
    }
  }
  std::ranges::sort(out);
  return out;
}

TEST(Datastore, FindsEveryPlaceThatLookingEverywhereFinds) {
  const TemporaryFile file;
  for (const int vocab : {1, 2, 5, 1000}) {
    const std::vector<Tokens> texts = random_texts(50, vocab, vocab);
    const Datastore store = store_of(texts, file);
    std::mt19937 random(vocab);
    for (int i = 0; i < 300; ++i) {
      Tokens run(1 + random() % 6);
      const Tokens& text = texts[random() % texts.size()];
      for (std::size_t j = 0; j < run.size(); ++j) {
        run[j] = i % 2 == 0 && j < text.size() ? text[j] : static_cast<TokenId>(random() % (vocab + 1));
      }
      ASSERT_EQ(found(store, run), naive(texts, run)) << vocab << " " << i;
    }
  }
}

TEST(Datastore, ItsPlacesStandInTheOrderOfWhatFollows) {
  const TemporaryFile file;
  const Datastore store = store_of(random_texts(60, 3, 9), file);
  const auto said = [&store](std::uint32_t index) {
    Tokens out;
    for (std::uint32_t ahead = 0; ahead < Datastore::kSortedTokens; ++ahead) {
      out.push_back(store.at(index, ahead));
      if (out.back() == Datastore::kEnd) break;
    }
    return out;
  };
  ASSERT_GT(store.num_places(), 100u);
  for (std::uint32_t i = 1; i < store.num_places(); ++i) ASSERT_LE(said(i - 1), said(i));
}

TEST(Datastore, TheSameTextsMakeTheSameFile) {
  const TemporaryFile one, other;
  store_of(random_texts(20, 4, 1), one);
  store_of(random_texts(20, 4, 1), other);
  EXPECT_EQ(bytes_of(one.path()), bytes_of(other.path()));
}

TEST(Datastore, MayBeEmpty) {
  const TemporaryFile file;
  for (const std::vector<Tokens>& texts : {std::vector<Tokens>{}, std::vector<Tokens>{Tokens{}}}) {
    const Datastore store = store_of(texts, file);
    EXPECT_EQ(store.num_tokens(), 0u);
    EXPECT_EQ(store.find(Tokens{1}).count, 0u);
    EXPECT_EQ(store.at(0, 0), Datastore::kEnd);
  }
}

TEST(Datastore, ABitThatIsNotAsItWasWrittenIsNoticed) {
  const TemporaryFile file;
  store_of(random_texts(4, 9, 3), file);
  const std::string good = bytes_of(file.path());
  for (std::size_t at = 0; at < good.size(); at += at < 64 ? 1 : 17) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    write(file.path(), bad);
    ASSERT_NE(why_not(file.path()), "it is good") << at;
  }
  for (const std::size_t size : {0ul, 1ul, 47ul, good.size() - 4, good.size() - 1}) {
    write(file.path(), good.substr(0, size));
    EXPECT_NE(why_not(file.path()), "it is good") << size;
  }
  write(file.path(), good + "1234");
  EXPECT_THAT(why_not(file.path()), HasSubstr("length differs from its header"));
  write(file.path(), good);
  EXPECT_EQ(why_not(file.path()), "it is good");
}

TEST(Datastore, SaysWhatIsWrong) {
  const TemporaryFile file;
  store_of(random_texts(4, 9, 3), file);
  EXPECT_THAT(why_not(file.path(), kKey + 1), HasSubstr("another tokenizer"));
  write(file.path(), std::string(100, 'x'));
  EXPECT_THAT(why_not(file.path()), HasSubstr("not a datastore"));
  EXPECT_EQ(Datastore::open(file.path() + ".none", kKey).error().code, Code::kNotFound);
}

TEST(DatastoreBuilder, LeavesWhatWasThereWhereItCannotWrite) {
  DatastoreBuilder builder;
  builder.add(Tokens{1, 2});
  const TemporaryFile file;
  const Result<Done> written = builder.write(file.path() + ".none/file", kKey);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("No such file or directory"));
}

TEST(DatastoreBuilder, ReportsHowFarItIs) {
  DatastoreBuilder builder;
  for (const Tokens& text : random_texts(50, 20, 1)) builder.add(text);
  const TemporaryFile file;
  std::vector<int> told;
  ASSERT_TRUE(builder.write(file.path(), kKey, [&told](int percent) { told.push_back(percent); }).ok());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 100);
}

}  // namespace
}  // namespace quire::speculate::datastore_test
