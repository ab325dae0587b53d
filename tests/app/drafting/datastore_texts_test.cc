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
#include "tests/support/temporary_folder.h"

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
  for (const std::string& path : text_files({"first", dir.string(), "last"}, "output")) {
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
}

std::string fault_of(const std::string& bytes) {
  std::istringstream in(bytes);
  return why_not_text(in).value_or("");
}

TEST(BuildDatastore, TextIsUtf8WithoutZeroBytes) {
  EXPECT_EQ(fault_of(""), "");
  EXPECT_EQ(fault_of("plain\n"), "");
  EXPECT_EQ(fault_of("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"), "");
  EXPECT_EQ(fault_of(std::string("\x89PNG\r\n\x1A\n\0", 9)), "a zero byte at offset 8");
  EXPECT_EQ(fault_of("ab\xE9t\xE9"), "a byte that is not UTF-8 at offset 2");
  EXPECT_EQ(fault_of(std::string("\xFF\xFEh\0i\0", 6)), "it is UTF-16");
  EXPECT_EQ(fault_of("cut off \xF0\x9F\x98"), "a character that is cut off at offset 8");
}

TEST(BuildDatastore, ACharacterAtTheEdgeOfWhatIsReadAtATimeIsWhole) {
  constexpr std::size_t kRead = std::size_t{1} << 20;
  for (std::size_t before = 0; before <= 4; ++before) {
    const std::string text(kRead - before, 'a');
    EXPECT_EQ(fault_of(text + "\xF0\x9F\x98\x80" + "b"), "") << before;
    EXPECT_EQ(fault_of(text + "\xF0\x9F\x98\x80" + "\xFF"),
              "a byte that is not UTF-8 at offset " + std::to_string(text.size() + 4));
    EXPECT_EQ(fault_of(text + std::string("\xF0\x9F\x98\x80\0", 5)),
              "a zero byte at offset " + std::to_string(text.size() + 4));
  }
}

TEST(BuildDatastore, NamesEveryFileThatIsNotTextAndReadsNoModel) {
  const test::TemporaryFolder folder;
  folder.write("a.txt", "a story");
  folder.write("b.png", std::string("\x89PNG\0", 5));
  folder.write("c/d.bin", "\xFF");
  Config config;
  config.model = "/nonexistent/model";  // would be refused if it were read
  try {
    build_datastore(config, {{folder.path()}, folder.path_of("out")});
    FAIL() << "no error";
  } catch (const StartError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--text: 2 of 3 files are not text in UTF-8"));
    EXPECT_THAT(error.what(), HasSubstr("b.png: a zero byte at offset 4"));
    EXPECT_THAT(error.what(), HasSubstr("c/d.bin: a byte that is not UTF-8 at offset 0"));
    EXPECT_THAT(error.what(), HasSubstr("Give text files"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path_of("out")));
}

TEST(BuildDatastore, ChecksTheOutputBeforeItReadsATextAndSaysWhatToDo) {
  const test::TemporaryFolder folder;
  folder.write("file", "a story");
  const std::vector<std::string> unread = {folder.path_of("none")};
  const auto refused = [&](const std::string& output) { return refusal({unread, output}); };
  EXPECT_THAT(refused(folder.path()), HasSubstr("this is a directory; give a file in it"));
  EXPECT_THAT(refused(folder.path_of("new/")), HasSubstr("this is a directory"));
  EXPECT_THAT(refused(folder.path_of("a/b/out")), HasSubstr("make it first: mkdir -p " + folder.path_of("a/b")));
  EXPECT_THAT(refused(folder.path_of("file/out")), HasSubstr("is not a directory; give another name"));
  EXPECT_THAT(refused("/dev/null"), HasSubstr("this is no regular file"));
  EXPECT_THAT(refused(""), HasSubstr("give the name of the file"));
  EXPECT_THAT(refused(folder.path_of("out")), HasSubstr("none: cannot be read"));  // the output is good
}

TEST(BuildDatastore, DoesNotReadItsOwnOutputAndDoesNotReplaceAText) {
  const test::TemporaryFolder folder;
  folder.write("a.txt", "a story");
  const std::string output = folder.path_of("store");
  EXPECT_EQ(build({{folder.path()}, output}), 0);
  EXPECT_EQ(build({{folder.path()}, output}), 0);  // over the first, which is not text
  EXPECT_THAT(refusal({{folder.path_of("a.txt")}, folder.path_of("a.txt")}), HasSubstr("this is a file of --text"));
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
