#include "core/model/gguf/gguf_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "core/base/log.h"
#include "core/base/start_error.h"

namespace quire::model {
namespace {

constexpr std::string_view kEnd = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kDigits = 5;
constexpr std::uint64_t kMaxParts = 99999;

bool are_digits(std::string_view text) {
  return text.size() == kDigits && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::vector<std::string> parts_of_split(const std::string& path) {
  const std::size_t numbered = kDigits + kOf.size() + kDigits + kEnd.size();
  if (path.size() <= numbered || !path.ends_with(kEnd)) return {path};
  const std::string before = path.substr(0, path.size() - numbered);
  const std::string_view number = std::string_view(path).substr(before.size(), kDigits);
  const std::string_view of = std::string_view(path).substr(before.size() + kDigits, kOf.size());
  const std::string_view count = std::string_view(path).substr(before.size() + kDigits + kOf.size(), kDigits);
  if (!before.ends_with('-') || of != kOf || !are_digits(number) || !are_digits(count)) return {path};
  std::uint64_t parts = 0;
  std::from_chars(count.data(), count.data() + count.size(), parts);
  std::vector<std::string> out;
  for (std::uint64_t part = 1; part <= parts; ++part)
    out.push_back(fmt::format("{}{:05}-of-{}.gguf", before, part, count));
  return out.empty() ? std::vector<std::string>{path} : out;
}

GgufSet::GgufSet(const std::string& path) {
  const std::vector<std::string> parts = parts_of_split(path);
  open(parts.front());
  const GgufFile& first = metadata();
  const std::uint64_t count = first.uint("split.count").value_or(1);
  if (const auto type = first.text("general.type"); type && *type != "model") {
    throw StartError(fmt::format("{} is no model: its general.type is '{}'{}", first.name(), log_safe(*type),
                                 *type == "adapter"  ? "; merge the adapter into its model"
                                 : *type == "mmproj" ? "; give the model's own file, images are not read"
                                                     : ""));
  }
  if (count > kMaxParts || std::max<std::uint64_t>(count, 1) != parts.size()) {
    throw StartError(fmt::format("{}: key 'split.count' is {}, and its name is that of one of {} parts", first.name(),
                                 count, parts.size()));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) open(parts[i]);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::uint64_t number = files_[i]->uint("split.no").value_or(0);
    if (number != i) {
      throw StartError(fmt::format("{}: key 'split.no' is {}; the part's name says {}", files_[i]->name(), number, i));
    }
    for (const GgufTensor& tensor : files_[i]->tensors()) {
      if (!tensors_.emplace(tensor.name, &tensor).second) {
        throw StartError(
            fmt::format("{}: tensor '{}' is in another part, too", files_[i]->name(), log_safe(tensor.name)));
      }
    }
  }
  const std::uint64_t expected = first.uint("split.tensors.count").value_or(tensors_.size());
  if (expected != tensors_.size()) {
    throw StartError(fmt::format("{}: key 'split.tensors.count' is {}, and the parts have {} tensors", first.name(),
                                 expected, tensors_.size()));
  }
}

void GgufSet::open(const std::string& path) {
  Result<std::unique_ptr<MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) throw StartError(mapped.error().message);
  files_.push_back(std::make_unique<GgufFile>((*mapped)->bytes(), path));
  mapped_.push_back(*std::move(mapped));
}

const MappedFile* GgufSet::mapped(std::string_view file_name) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string_view name = files_[i]->name();
    if (name.substr(name.rfind('/') + 1) == file_name) return mapped_[i].get();
  }
  return nullptr;
}

const GgufTensor* GgufSet::find(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? nullptr : found->second;
}

}  // namespace quire::model
