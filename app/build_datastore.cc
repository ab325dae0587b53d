#include "app/build_datastore.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "app/commands.h"
#include "app/loaded_model.h"
#include "core/base/start_error.h"
#include "core/model/numeric_mode.h"
#include "core/speculate/lookup/datastore.h"

namespace quire::app {
namespace {

constexpr std::string_view kBetweenTexts = "<|endoftext|>";

void add_text(const text::Tokenizer& tokenizer, const std::string& text, speculate::DatastoreBuilder& builder) {
  const std::vector<TokenId> tokens = tokenizer.encode(text, /*add_special_tokens=*/false);
  if (builder.add(tokens)) return;
  throw StartError(
      fmt::format("--text: with the next {} tokens there are more than the 4294967294 of a datastore", tokens.size()));
}

}  // namespace

std::uint64_t tokenizer_key(const model::ModelFiles& files) {
  return model::hash_bytes(files.require("tokenizer.json"), 0);
}

std::vector<std::string> text_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    const std::size_t before = out.size();
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->is_regular_file(error)) out.push_back(entry->path().string());
    }
    if (error) throw StartError(fmt::format("--text {}: {}", path, error.message()));
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  }
  return out;
}

void for_each_text(std::istream& in, const std::function<void(const std::string&)>& take) {
  std::string text;
  const auto finish = [&] {
    if (text.find_first_not_of(" \t\r\n") != std::string::npos) take(text);
    text.clear();
  };
  std::string line;
  while (std::getline(in, line)) {
    std::string_view mark = line;
    if (mark.ends_with('\r')) mark.remove_suffix(1);
    if (mark == kBetweenTexts) {
      finish();
      continue;
    }
    text += line;
    if (!in.eof()) text += '\n';  // the last line may have none
  }
  finish();
}

int build_datastore(const Config& config, const BuildDatastoreOptions& options) {
  const ModelSource source = open_model(config.model);
  const std::shared_ptr<const text::Tokenizer> tokenizer = load_tokenizer(*source.files);
  const std::vector<std::string> files = text_files(options.texts);
  speculate::DatastoreBuilder builder;
  std::uint64_t num_texts = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::ifstream in(files[i], std::ios::binary);
    if (!in) throw StartError(fmt::format("--text {}: cannot be read", files[i]));
    for_each_text(in, [&](const std::string& text) {
      add_text(*tokenizer, text, builder);
      ++num_texts;
    });
    if (in.bad()) throw StartError(fmt::format("--text {}: cannot be read to its end", files[i]));
    fmt::print(stderr, "[{}/{}] {}: {} texts, {} tokens so far\n", i + 1, files.size(), files[i], num_texts,
               builder.num_tokens() - num_texts);
  }
  if (builder.num_tokens() == 0) throw StartError("--text: there is no text in these files");
  const auto progress = [](int percent) {
    if (percent % 10 == 0) fmt::print(stderr, "sorted {} %\n", percent);
  };
  const Result<Done> written = builder.write(options.output, tokenizer_key(*source.files), progress);
  if (!written) throw StartError(fmt::format("--output: {}", written.error().message));
  fmt::print("{}: {} texts, {} tokens of {}\n", options.output, num_texts, builder.num_tokens() - num_texts,
             source.names.front());
  return 0;
}

}  // namespace quire::app
