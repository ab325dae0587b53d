// Any bytes are a GGUF file to us: read or refused, never anything else. What was read lies inside the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/gguf/gguf_file.h"
#include "core/model/gguf/gguf_tokenizer.h"

namespace {

template <typename Ask>
void asked_or_refused(const Ask& ask) {
  try {
    ask();
  } catch (const quire::StartError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const quire::model::FileBytes file = std::as_bytes(std::span(data, size));
  asked_or_refused([&] {
    const quire::model::GgufFile gguf(file, "fuzz");
    for (const quire::model::GgufTensor& tensor : gguf.tensors()) {
      CHECK(tensor.data.empty() || tensor.data.data() >= file.data());
      CHECK(tensor.data.empty() || tensor.data.data() + tensor.data.size() <= file.data() + file.size());
    }
    for (const std::string_view key : gguf.keys()) {
      asked_or_refused([&] { gguf.integer(key); });
      asked_or_refused([&] { gguf.uint(key); });
      asked_or_refused([&] { gguf.number(key); });
      asked_or_refused([&] { gguf.flag(key); });
      asked_or_refused([&] { gguf.text(key); });
      asked_or_refused([&] { gguf.integers(key); });
      asked_or_refused([&] { gguf.numbers(key); });
      asked_or_refused([&] { gguf.flags(key); });
      asked_or_refused([&] { gguf.texts(key); });
    }
    asked_or_refused([&] { quire::model::gguf_tokenizer_json(gguf); });
    asked_or_refused([&] { quire::model::gguf_tokenizer_config_json(gguf); });
  });
  return 0;
}
