#include "app/drafting/datastore_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/command_line.h"
#include "app/model/embedded_model.h"
#include "app/model/loaded_model.h"
#include "core/base/start_error.h"
#include "core/speculate/lookup/datastore.h"
#include "tests/support/temporary_file.h"

namespace quire::app::build_datastore_test {
namespace {

using test::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::vector<std::string> texts_of(const std::string& file) {
  std::istringstream in(file);
  std::vector<std::string> out;
  for_each_text(in, [&out](const std::string& text) { out.push_back(text); });
  return out;
}

int build(const BuildDatastoreOptions& options) {
  Config config;
  config.model = "stories";
  return build_datastore(config, options);
}

std::string refusal(const BuildDatastoreOptions& options) {
  try {
    build(options);
  } catch (const StartError& error) {
    return error.what();
  }
  return "";
}

TEST(BuildDatastore, AFileIsOneTextOrSeveralBetweenMarkedLines) {
  EXPECT_THAT(texts_of("one\n\ntext\n"), ElementsAre("one\n\ntext\n"));
  EXPECT_THAT(texts_of("no end of line"), ElementsAre("no end of line"));
  EXPECT_THAT(texts_of("a\n<|endoftext|>\nb\nc\n<|endoftext|>\r\nd"), ElementsAre("a\n", "b\nc\n", "d"));
  EXPECT_THAT(texts_of("a <|endoftext|>\nb"), ElementsAre("a <|endoftext|>\nb"));  // not a line of its own
  EXPECT_THAT(texts_of(""), IsEmpty());
  EXPECT_THAT(texts_of("\n<|endoftext|>\n \t\r\n<|endoftext|>"), IsEmpty());
}

TEST(BuildDatastore, ReadsDirectoriesInTheOrderOfTheirPaths) {
  const TemporaryFile name;
  const std::filesystem::path dir = name.path() + ".dir";
  std::filesystem::create_directories(dir / "b");
  for (const char* file : {"c.txt", "b/z.txt", "b/a.txt", "a.txt"}) write((dir / file).string(), "x");
  std::vector<std::string> seen;
  for (const std::string& path : text_files({"first", dir.string(), "last"})) {
    seen.push_back(path.starts_with(dir.string()) ? path.substr(dir.string().size() + 1) : path);
  }
  EXPECT_THAT(seen, ElementsAre("first", "a.txt", "b/a.txt", "b/z.txt", "c.txt", "last"));
  std::filesystem::remove_all(dir);
}

TEST(BuildDatastore, WritesWhatTheModelsTokenizerMakesOfTheTexts) {
  const TemporaryFile text, output;
  write(text.path(), "Once upon a time\n<|endoftext|>\nThere was a red ball.\n");
  ASSERT_EQ(build({{text.path()}, output.path()}), 0);
  const auto files = embedded_model();
  const Result<speculate::Datastore> store = speculate::Datastore::open(output.path(), tokenizer_key(*files));
  ASSERT_TRUE(store.ok()) << store.error().message;
  const auto tokenizer = load_tokenizer(*files);
  std::uint32_t sum = 0;
  for (const char* said : {"Once upon a time\n", "There was a red ball.\n"}) {
    const std::vector<TokenId> tokens = tokenizer->encode(said, false);
    sum += static_cast<std::uint32_t>(tokens.size()) + 1;
    const auto range = store->find(tokens);
    ASSERT_EQ(range.count, 1u);
    EXPECT_EQ(store->at(range.first, static_cast<std::uint32_t>(tokens.size())), speculate::Datastore::kEnd);
  }
  EXPECT_EQ(store->num_tokens(), sum);
}

TEST(BuildDatastore, SaysWhatItCannotReadOrWrite) {
  const TemporaryFile text, output;
  EXPECT_THAT(refusal({{text.path()}, output.path()}), HasSubstr("no text"));
  EXPECT_THAT(refusal({{text.path() + ".none"}, output.path()}), HasSubstr(".none: cannot be read"));
  write(text.path(), "a story");
  EXPECT_THAT(refusal({{text.path()}, output.path() + ".none/file"}), HasSubstr("--output: cannot make"));
}

TEST(BuildDatastore, TakesItsOptionsFromTheCommandLine) {
  Problems problems;
  const CommandLine line =
      parse_command_line({"build-datastore", "--text", "a", "--text", "b", "dir", "--output", "o"}, problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(line.command, Command::kBuildDatastore);
  EXPECT_THAT(line.build_datastore.texts, ElementsAre("a", "b"));
  EXPECT_EQ(line.build_datastore.output, "o");
  EXPECT_THAT(line.flags.at("model").values, ElementsAre("dir"));
  parse_command_line({"build-datastore", "--text", "a"}, problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("--output")));
}

}  // namespace
}  // namespace quire::app::build_datastore_test
