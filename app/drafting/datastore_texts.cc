#include "app/drafting/datastore_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/base/start_error.h"
#include "core/model/source/digest.h"
#include "core/model/source/mapped_file.h"
#include "core/text/unicode/utf8.h"

namespace quire::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBetweenTexts = "<|endoftext|>";
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

bool is_same_file(const fs::path& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// The offset of the first byte that is not UTF-8; nullopt: there is none. Bytes at the end that begin a character are
// left to the next chunk: `num_whole` are those before them.
std::optional<std::size_t> invalid_byte(std::string_view chunk, std::size_t& num_whole) {
  for (std::size_t at = 0; at < chunk.size();) {
    const text::Utf8Head head = text::utf8_head(chunk.substr(at));
    if (head.kind == text::Utf8Head::Kind::kInvalid) return at;
    if (head.kind == text::Utf8Head::Kind::kIncomplete) {
      num_whole = at;
      return std::nullopt;
    }
    at += head.bytes;
  }
  num_whole = chunk.size();
  return std::nullopt;
}

}  // namespace

std::uint64_t tokenizer_key(const model::ModelFiles& files) {
  return model::hash_bytes(files.require("tokenizer.json"), 0);
}

std::vector<std::string> text_files(const std::vector<std::string>& paths, const std::string& output) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (is_same_file(path, output)) {
        throw StartError(fmt::format("--output {}: this is a file of --text; give another name", output));
      }
      out.push_back(path);
      continue;
    }
    const std::size_t before = out.size();
    for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->is_regular_file(error) && !is_same_file(entry->path(), output)) out.push_back(entry->path().string());
    }
    if (error) throw StartError(fmt::format("--text {}: {}", path, error.message()));
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
  }
  return out;
}

void check_texts(const std::vector<std::string>& files) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> faults;
  for (const std::string& path : files) {
    std::error_code error;
    std::ifstream in(path, std::ios::binary);
    if (!in) throw StartError(fmt::format("--text {}: cannot be read", path));
    if (!fs::is_regular_file(path, error)) continue;
    const std::optional<std::string> why = why_not_text(in);
    if (in.bad()) throw StartError(fmt::format("--text {}: cannot be read to the end", path));
    if (why) faults.push_back(fmt::format("{}: {}", path, *why));
  }
  if (faults.empty()) return;
  std::string text = fmt::format("--text: {} of {} files {} not text in UTF-8", faults.size(), files.size(),
                                 faults.size() == 1 ? "is" : "are");
  for (std::size_t i = 0; i < std::min(faults.size(), kMostNamed); ++i) text += "\n  " + faults[i];
  if (faults.size() > kMostNamed) text += fmt::format("\n  and {} more", faults.size() - kMostNamed);
  throw StartError(text +
                   "\nGive text files, or a directory that has no others. `iconv -t UTF-8` converts other encodings");
}

void check_output(const std::string& output) {
  const auto refuse = [&](const std::string& why) { throw StartError(fmt::format("--output {}: {}", output, why)); };
  std::error_code error;
  if (output.empty()) refuse("give the name of the file to write");
  if (output.ends_with('/') || fs::is_directory(output, error)) {
    refuse(
        fmt::format("this is a directory; give a file in it, such as {}", (fs::path(output) / "datastore").string()));
  }
  if (fs::exists(output, error) && !fs::is_regular_file(output, error)) {
    refuse("this is no regular file; give another name");
  }
  const fs::path parent = fs::path(output).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  if (!fs::exists(directory, error)) {
    refuse(fmt::format("there is no directory {}; make it first: mkdir -p {}", directory, directory));
  }
  if (!fs::is_directory(directory, error)) refuse(directory + " is not a directory; give another name");
  // The file is written beside its name and renamed.
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    refuse(fmt::format("this process may not write into {} ({}); give another directory", directory,
                       model::system_error_text(errno)));
  }
}

std::optional<std::string> why_not_text(std::istream& in) {
  std::string chunk;
  std::uint64_t offset = 0;  // of the chunk's first byte
  for (;;) {
    const std::size_t kept = chunk.size();
    chunk.resize(kept + kChunkBytes);
    in.read(chunk.data() + kept, static_cast<std::streamsize>(kChunkBytes));
    chunk.resize(kept + static_cast<std::size_t>(in.gcount()));
    if (offset == 0 && (chunk.starts_with("\xFF\xFE") || chunk.starts_with("\xFE\xFF"))) return "it is UTF-16";
    if (const std::size_t zero = chunk.find('\0', kept); zero != chunk.npos) {
      return fmt::format("a zero byte at offset {}", offset + zero);
    }
    std::size_t num_whole = 0;
    if (const auto invalid = invalid_byte(chunk, num_whole)) {
      return fmt::format("a byte that is not UTF-8 at offset {}", offset + *invalid);
    }
    if (!in) {
      if (num_whole == chunk.size()) return std::nullopt;
      return fmt::format("a character that is cut off at offset {}", offset + num_whole);
    }
    chunk.erase(0, num_whole);
    offset += num_whole;
  }
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
