// Lets test_tokenizer_equals_reference.py ask quire's tokenizer: encode_tool tokenizer.json < requests > answers.
// Shape   a request is one byte that says what, a u32 length, and a payload; an answer is a u32 length and a payload.
//         e/E  text -> i32 ids, without/with special tokens
//         d/D  i32 ids -> text, special tokens kept/skipped
//         s/S  the same by the incremental detokenizer
//         t    text -> f64 seconds of processor time that encoding it took
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/text/detokenizer.h"
#include "core/text/tokenizer.h"

namespace {

using quire::TokenId;
using quire::text::Detokenizer;
using quire::text::Tokenizer;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::vector<TokenId> ids_of(const std::string& payload) {
  std::vector<TokenId> ids(payload.size() / sizeof(TokenId));
  if (!ids.empty()) std::memcpy(ids.data(), payload.data(), ids.size() * sizeof(TokenId));
  return ids;
}

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids, bool skip) {
  Detokenizer detokenizer(tokenizer, skip);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

std::string answer(const std::shared_ptr<const Tokenizer>& tokenizer, char what, const std::string& payload) {
  switch (what) {
    case 'e':
    case 'E':
      return bytes_of(tokenizer->encode(payload, what == 'E'));
    case 'd':
    case 'D':
      return tokenizer->decode(ids_of(payload), what == 'D');
    case 's':
    case 'S':
      return streamed(tokenizer, ids_of(payload), what == 'S');
    case 't': {
      const std::clock_t begin = std::clock();
      const std::vector<TokenId> ids = tokenizer->encode(payload, false);
      const auto seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      return bytes_of(std::vector<double>{seconds});
    }
    default:
      throw std::runtime_error(std::string("unknown request ") + what);
  }
}

std::string file_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: encode_tool tokenizer.json < requests > answers\n";
    return 2;
  }
  const auto tokenizer = Tokenizer::load(file_text(argv[1]), "");
  char what;
  while (std::cin.get(what)) {
    std::uint32_t size = 0;
    std::cin.read(reinterpret_cast<char*>(&size), sizeof size);
    std::string payload(size, '\0');
    std::cin.read(payload.data(), size);
    const std::string reply = answer(tokenizer, what, payload);
    const auto reply_size = static_cast<std::uint32_t>(reply.size());
    std::cout.write(reinterpret_cast<const char*>(&reply_size), sizeof reply_size);
    std::cout.write(reply.data(), reply_size);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
