#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "app/commands/commands.h"
#include "app/drafting/datastore_texts.h"
#include "app/model/loaded_model.h"
#include "app/process/progress_line.h"
#include "core/base/start_error.h"
#include "core/speculate/lookup/datastore.h"

namespace quire::app {
namespace {

// Tokenises the files into a builder, and shows how far it is.
class TextReader {
 public:
  TextReader(const text::Tokenizer& tokenizer, const std::vector<std::string>& files, const std::string& model,
             speculate::DatastoreBuilder& builder)
      : tokenizer_(tokenizer), builder_(builder), display_("tokenising", model) {
    std::error_code error;
    for (const std::string& path : files) {
      if (std::filesystem::is_regular_file(path, error)) num_bytes_ += std::filesystem::file_size(path, error);
    }
  }

  void read(const std::string& path) {
    std::error_code error;
    const bool is_checked = std::filesystem::is_regular_file(path, error);  // by check_texts()
    std::ifstream in(path, std::ios::binary);
    if (!in) throw StartError(fmt::format("--text {}: cannot be read", path));
    for_each_text(in, [&](const std::string& text) {
      if (!is_checked) check(path, text);
      add(text);
    });
    if (in.bad()) throw StartError(fmt::format("--text {}: cannot be read to the end", path));
  }

  std::uint64_t num_texts() const { return num_texts_; }

 private:
  static void check(const std::string& path, const std::string& text) {
    std::istringstream in(text);
    if (const auto why = why_not_text(in)) {
      throw StartError(fmt::format("--text {}: not text in UTF-8: {} of a text; give text files", path, *why));
    }
  }

  void add(const std::string& text) {
    const std::vector<TokenId> tokens = tokenizer_.encode(text, /*add_special_tokens=*/false);
    if (!builder_.add(tokens)) {
      throw StartError(
          fmt::format("--text: the next {} tokens exceed the 4294967294 that a datastore may have; give fewer texts",
                      tokens.size()));
    }
    ++num_texts_;
    done_ += text.size();
    display_.show(done_, std::max(num_bytes_, done_));
  }

  const text::Tokenizer& tokenizer_;
  speculate::DatastoreBuilder& builder_;
  WorkDisplay display_;
  std::uint64_t num_bytes_ = 0;  // of regular files
  std::uint64_t done_ = 0;
  std::uint64_t num_texts_ = 0;
};

Result<Done> sort_and_write(const speculate::DatastoreBuilder& builder, const std::string& output,
                            const ModelSource& source) {
  const std::uint64_t num_bytes = builder.num_tokens() * sizeof(TokenId);
  WorkDisplay display("sorting", source.name);
  return builder.write(output, tokenizer_key(*source.files), [&](int percent) {
    display.show(num_bytes * static_cast<std::uint64_t>(percent) / 100, num_bytes);
  });
}

}  // namespace

int build_datastore(const Config& config, const BuildDatastoreOptions& options) {
  check_output(options.output);
  const std::vector<std::string> files = text_files(options.texts, options.output);
  check_texts(files);
  const ModelSource source = open_model(config.model);
  const std::shared_ptr<const text::Tokenizer> tokenizer = load_tokenizer(*source.files);
  speculate::DatastoreBuilder builder;
  std::uint64_t num_texts = 0;
  {
    TextReader reader(*tokenizer, files, source.name, builder);
    for (const std::string& path : files) reader.read(path);
    num_texts = reader.num_texts();
  }
  if (builder.num_tokens() == 0) throw StartError("--text: these files have no text; give files with text in them");
  const Result<Done> written = sort_and_write(builder, options.output, source);
  if (!written) throw StartError(fmt::format("--output: {}", written.error().message));
  fmt::print("{}: {} texts, {} tokens of {}\n", options.output, num_texts, builder.num_tokens() - num_texts,
             source.name);
  return 0;
}

}  // namespace quire::app
