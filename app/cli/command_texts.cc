#include "app/cli/command_texts.h"

#include <algorithm>

namespace quire::app {
namespace {

// clang-format off
constexpr CommandText kCommandTexts[] = {
    {"serve", "[MODEL]", {{
        {"quire serve", "the small model inside the program, at http://127.0.0.1:8000"},
        {"quire serve Qwen/Qwen3-0.6B --max-model-len 8192", "a model of the Hugging Face hub, downloaded at first use"},
        {"quire serve model.gguf --plan", "the memory that a server of this file would take"}}}},
    {"chat", "[MODEL]", {{
        {"quire chat Qwen/Qwen3-0.6B", "a conversation with a model, which gets a server of its own"},
        {"quire chat model.gguf --system 'Answer briefly.'", "with a system message"},
        {"quire chat --url http://127.0.0.1:8000", "with a server that is running"}}}},
    {"generate", "[MODEL] [PROMPT]", {{
        {"quire generate stories 'Once upon a time'", "the small model inside the program"},
        {"quire generate Qwen/Qwen3-0.6B 'Why is the sky blue?'", "an answer of a chat model"},
        {"quire generate stories --prompt-file a.txt --seed 1", "the prompt from a file; a seed repeats the answer"}}}},
    {"pull", "MODEL", {{
        {"quire pull Qwen/Qwen3-0.6B", "downloads a model, or what is new of it"},
        {"quire pull Qwen/Qwen3-0.6B-GGUF:Q8_0", "one GGUF file of a repository that has several"},
        {"quire pull Qwen/Qwen3-0.6B --revision main", "a branch, tag or commit"}}}},
    {"list", "", {{
        {"quire list", "the downloaded models, and whether they can be served"},
        {"quire list --names", "their names only"},
        {"quire list --json", "for programs"}}}},
    {"rm", "MODEL", {{
        {"quire rm Qwen/Qwen3-0.6B", "removes a downloaded model, after a question"},
        {"quire rm Qwen/Qwen3-0.6B --yes", "without the question"},
        {"quire rm Qwen/Qwen3-0.6B --revision v1", "one of several revisions"}}}},
    {"inspect", "[MODEL]", {{
        {"quire inspect Qwen/Qwen3-0.6B", "parameters, context, template, memory and estimated speed"},
        {"quire inspect model.gguf --tensors", "and every tensor"},
        {"quire inspect --url http://127.0.0.1:8000", "the KV cache of a running server"}}}},
    {"ps", "[ID]", {{
        {"quire ps", "the requests that run and wait on http://127.0.0.1:8000"},
        {"quire ps 3cdd655e", "one of them in words: why it waited, its prompt, its tokens"},
        {"quire ps --url http://127.0.0.1:9000 --json", "of another server or its admin port, for programs"}}}},
    {"stop", "ID", {{
        {"quire stop 3cdd655e", "ends a request; its client gets the text so far"},
        {"quire stop 3cdd655e --url http://127.0.0.1:9000", "of another server, or on its admin port"},
        {"quire stop 3cdd655e --url https://llm --cacert ca.pem", "with a certificate of your own"}}}},
    {"doctor", "[MODEL]", {{
        {"quire doctor", "what would be slow or fail on this machine, and what to do"},
        {"quire doctor Qwen/Qwen3-0.6B", "and whether this model fits, and how fast it would be"},
        {"quire doctor --port 9000 --json", "with another port, for programs"}}}},
    {"models", "", {{
        {"quire models", "the families of models that quire serves"},
        {"quire models | grep -i qwen", "whether a family is among them"},
        {"quire models --help", "this page"}}}},
    {"bench", "[MODEL]", {{
        {"quire bench Qwen/Qwen3-0.6B", "speed of prefill and decoding"},
        {"quire bench --mode micro", "speed of each kernel, beside what this machine can do"},
        {"quire bench --mode serve --streams 1,8,32", "throughput with 1, 8 and 32 concurrent streams"}}}},
    {"quantize", "MODEL", {{
        {"quire quantize Qwen/Qwen3-0.6B --to w8a8 --out q8", "8 bits, and inputs in 8 bits: quire, transformers and vLLM read it"},
        {"quire quantize DIR --to w4a16 --out q4", "4 bits in groups of 128; goes on where it was interrupted"},
        {"quire quantize a-f16.gguf --to q8_0 --out a-q8_0.gguf", "a GGUF file"}}}},
    {"build-datastore", "[MODEL]", {{
        {"quire build-datastore --text a.txt --output a.ds", "for the tokenizer of the model inside the program"},
        {"quire build-datastore --text src --output a.ds ORG/NAME", "of all files below a directory, for another model"},
        {"quire build-datastore --text a --text b --output a.ds", "of several texts"}}}},
    {"key", "", {{
        {"quire key --name alice", "prints a key, and its line for --api-key-file"},
        {"quire key --name bob --max-running 8 --file keys", "with a limit; appends the line to a file"},
        {"quire key --name prometheus --role monitor", "for /metrics only"}}}},
    {"completion", "bash|zsh|fish", {{
        {"source <(quire completion bash)", "in ~/.bashrc"},
        {"source <(quire completion zsh)", "in ~/.zshrc, after compinit"},
        {"quire completion fish | source", "in ~/.config/fish/config.fish"}}}},
};
// clang-format on

constexpr std::string_view kMostUsed[] = {
    "model",           "host",         "port",     "api-key-file", "served-model-name", "max-model-len",
    "kv-cache-memory", "max-num-seqs", "quantize", "device",       "threads",           "log-level"};

}  // namespace

std::span<const CommandText> command_texts() { return kCommandTexts; }

const CommandText* find_command_text(std::string_view name) {
  const auto at = std::ranges::find(kCommandTexts, name, &CommandText::name);
  return at == std::end(kCommandTexts) ? nullptr : &*at;
}

std::span<const std::string_view> most_used_fields() { return kMostUsed; }

}  // namespace quire::app
