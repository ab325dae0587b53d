#include "app/cli/other_commands.h"

#include <algorithm>

namespace quire::app {
namespace {

// clang-format off
constexpr OtherCommand kOtherCommands[] = {
    // ollama
    {"cp", "serve", "a name is no copy here: quire serve MODEL --served-model-name NAME"},
    {"create", "serve", "there is no Modelfile: the model's own files have template and sampling; quire serve MODEL --chat-template FILE"},
    {"launch", "serve", "start a server with quire serve MODEL and point the program at it: docs/clients.md"},
    {"ls", "list", "it is quire list"},
    {"push", "", "quire uploads nothing: use hf upload"},
    {"remove", "rm", "it is quire rm MODEL"},
    {"run", "chat", "it is quire chat MODEL, or quire generate MODEL PROMPT"},
    {"show", "inspect", "it is quire inspect MODEL"},
    {"signin", "pull", "set HF_TOKEN and use quire pull MODEL: docs/hub.md"},
    {"signout", "", "there is no account; the token of the Hugging Face hub is HF_TOKEN: docs/hub.md"},
    // vLLM
    {"collect-env", "doctor", "it is quire doctor"},
    {"complete", "generate", "it is quire generate MODEL PROMPT"},
    {"run-batch", "serve", "there is no batch file: send the requests to quire serve MODEL"},
    // llama.cpp
    {"cli", "chat", "it is quire chat MODEL"},
    {"llama-bench", "bench", "it is quire bench MODEL"},
    {"llama-cli", "chat", "it is quire chat MODEL, or quire generate MODEL PROMPT"},
    {"llama-perplexity", "", "there is no such command; docs/quantization.md has perplexities"},
    {"llama-quantize", "quantize", "it is quire quantize FILE.gguf --to q8_0 --out OUT.gguf; quire serve MODEL --quantize int8 quantises while loading"},
    {"llama-server", "serve", "it is quire serve MODEL; docs/llama-flags.md has its flags"},
    {"server", "serve", "it is quire serve MODEL"},
    // Hugging Face, and common words
    {"benchmark", "bench", "it is quire bench MODEL"},
    {"completions", "completion", "it is quire completion bash, zsh or fish"},
    {"delete", "rm", "it is quire rm MODEL"},
    {"download", "pull", "it is quire pull MODEL"},
    {"info", "inspect", "it is quire inspect MODEL"},
    {"start", "serve", "it is quire serve MODEL"},
};
// clang-format on

}  // namespace

std::span<const OtherCommand> other_commands() { return kOtherCommands; }

const OtherCommand* find_other_command(std::string_view name) {
  const auto at = std::ranges::find(kOtherCommands, name, &OtherCommand::name);
  return at == std::end(kOtherCommands) ? nullptr : &*at;
}

}  // namespace quire::app
