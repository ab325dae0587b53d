#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "app/commands/commands.h"
#include "app/drafting/datastore_texts.h"
#include "app/model/loaded_model.h"
#include "core/base/start_error.h"
#include "core/speculate/lookup/datastore.h"

namespace quire::app {
namespace {

void add_text(const text::Tokenizer& tokenizer, const std::string& text, speculate::DatastoreBuilder& builder) {
  const std::vector<TokenId> tokens = tokenizer.encode(text, /*add_special_tokens=*/false);
  if (builder.add(tokens)) return;
  throw StartError(fmt::format(
      "--text: the next {} tokens exceed the 4294967294 that a datastore may have; give fewer texts", tokens.size()));
}

}  // namespace

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
    if (in.bad()) throw StartError(fmt::format("--text {}: cannot be read to the end", files[i]));
    fmt::print(stderr, "[{}/{}] {}: {} texts, {} tokens so far\n", i + 1, files.size(), files[i], num_texts,
               builder.num_tokens() - num_texts);
  }
  if (builder.num_tokens() == 0) throw StartError("--text: these files have no text");
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
