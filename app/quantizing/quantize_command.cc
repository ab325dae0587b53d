// quire quantize: writes a model with its matrices in fewer bits, for quire and for other programs.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "app/commands/commands.h"
#include "app/config/units.h"
#include "app/model/embedded_model.h"
#include "app/process/progress_line.h"
#include "app/quantizing/quantize_checkpoint.h"
#include "app/quantizing/quantize_gguf.h"
#include "core/base/start_error.h"

namespace quire::app {
namespace {

template <typename Result>
int report(const Result& result, const QuantizeOptions& options) {
  fmt::print("{}: {} matrices in {}, {} of {}\n", options.out, result.num_matrices, options.to,
             bytes_text(result.bytes), bytes_text(result.bytes_before));
  return 0;
}

}  // namespace

int quantize(const Config& config, const QuantizeOptions& options) {
  if (config.model == kEmbeddedModel) {
    throw StartError(
        "MODEL is missing: a directory with config.json and safetensors, a GGUF file, or a name of the hub");
  }
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(config.model, error);
  const bool is_for_gguf = options.to == "q8_0" || options.to == "q4_0";
  if (is_file && !is_for_gguf)
    throw StartError(
        fmt::format("{} is a file: --to {} takes a directory with safetensors; q8_0 and q4_0 take a GGUF file",
                    config.model, options.to));
  if (!is_file && is_for_gguf)
    throw StartError(
        fmt::format("{} is a directory: --to {} takes a GGUF file, as llama.cpp's convert_hf_to_gguf.py writes it; "
                    "w8a8, fp8 and w4a16 take a directory",
                    config.model, options.to));
  WorkDisplay display("quantising", config.model);
  const auto on_progress = [&](std::uint64_t done, std::uint64_t size) { display.show(done, size); };
  if (is_file)
    return report(quantize_gguf(config.model, options.to == "q8_0" ? "Q8_0" : "Q4_0", options.out, on_progress),
                  options);
  const QuantizedForm form = options.to == "w8a8"  ? QuantizedForm::kW8A8
                             : options.to == "fp8" ? QuantizedForm::kFp8
                                                   : QuantizedForm::kW4A16;
  return report(quantize_checkpoint(config.model, form, options.out, on_progress), options);
}

}  // namespace quire::app
