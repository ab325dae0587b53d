#include "app/drafting/datastore_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/base/start_error.h"
#include "core/model/source/digest.h"

namespace quire::app {
namespace {

constexpr std::string_view kBetweenTexts = "<|endoftext|>";

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
    if (!in.eof()) text += '\n';  // the last line may have no line break
  }
  finish();
}

}  // namespace quire::app
