// Prints what a GGUF file holds, for the comparison with the package gguf: one line of JSON for each key and tensor.
//   gguf_tool FILE
//   gguf_tool --tokenizer FILE    its tokenizer.json
#include <openssl/evp.h>

#include <boost/json.hpp>
#include <iostream>

#include "core/base/start_error.h"
#include "core/model/gguf/gguf_file.h"
#include "core/model/gguf/gguf_tokenizer.h"
#include "core/model/source/mapped_file.h"

namespace {

namespace json = boost::json;

// By the first getter that takes it.
json::value value_of(const quire::model::GgufFile& file, std::string_view key) {
  const auto attempt = [](const auto& get, json::value& out) {
    try {
      out = json::value_from(get());
      return true;
    } catch (const quire::StartError&) {
      return false;
    }
  };
  json::value out;
  attempt([&] { return *file.flag(key); }, out) || attempt([&] { return *file.integer(key); }, out) ||
      attempt([&] { return *file.number(key); }, out) || attempt([&] { return *file.text(key); }, out) ||
      attempt([&] { return *file.flags(key); }, out) || attempt([&] { return *file.integers(key); }, out) ||
      attempt([&] { return *file.numbers(key); }, out) || attempt([&] { return *file.texts(key); }, out);
  return out;
}

std::string sha256(quire::model::FileBytes bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), hash, &length, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[hash[i] >> 4], kDigits[hash[i] & 15]};
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool wants_tokenizer = argc == 3 && std::string_view(argv[1]) == "--tokenizer";
  if (argc != 2 && !wants_tokenizer) return 2;
  try {
    const auto mapped = quire::model::MappedFile::open(argv[argc - 1]);
    if (!mapped) throw quire::StartError(mapped.error().message);
    const quire::model::GgufFile file((*mapped)->bytes(), argv[argc - 1]);
    if (wants_tokenizer) {
      std::cout << quire::model::gguf_tokenizer_json(file);
      return 0;
    }
    for (const std::string_view key : file.keys()) {
      std::cout << json::object{{"key", key}, {"value", value_of(file, key)}} << "\n";
    }
    for (const quire::model::GgufTensor& tensor : file.tensors()) {
      std::cout << json::object{{"tensor", tensor.name},
                                {"dtype", tensor.dtype},
                                {"shape", json::value_from(tensor.shape)},
                                {"sha256", sha256(tensor.data)}}
                << "\n";
    }
  } catch (const quire::StartError& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
