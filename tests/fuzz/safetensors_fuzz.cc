// Any bytes are a safetensors file, a shard index or a config to us: parsed or refused, never anything else.
// What was accepted must hold what the parser promises: every tensor's bytes lie inside the file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/check.h"
#include "core/base/start_error.h"
#include "core/model/arch/config.h"
#include "core/model/source/safetensors.h"
#include "core/model/source/safetensors_header.h"

namespace {

template <typename Parse>
void parsed_or_refused(const Parse& parse) {
  try {
    parse();
  } catch (const quire::StartError&) {
  }
}

void parse_file(quire::model::FileBytes file) {
  for (const quire::model::Tensor& tensor : quire::model::parse_safetensors(file, "fuzz")) {
    CHECK(tensor.data.size() <= file.size());
    CHECK(tensor.data.data() >= file.data() && tensor.data.data() + tensor.data.size() <= file.data() + file.size());
    if (tensor.format())
      CHECK_EQ(tensor.num_elements() * quire::backend::bytes_of(*tensor.format()), tensor.data.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parsed_or_refused([&] { parse_file(std::as_bytes(std::span(data, size))); });
  parsed_or_refused([&] { quire::model::parse_safetensors_header(text, "fuzz"); });
  parsed_or_refused([&] { quire::model::parse_shard_index(text, "fuzz"); });
  parsed_or_refused([&] { quire::model::parse_config(text, "fuzz").describe(); });
  return 0;
}
