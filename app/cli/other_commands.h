// Commands of vLLM, llama.cpp, ollama and Hugging Face that quire has under another name, or has not.
// Thread  any; the table is constant.
#pragma once

#include <span>
#include <string_view>

namespace quire::app {

struct OtherCommand {
  std::string_view name;  // "run"
  std::string_view ours;  // "chat"; empty: there is none
  std::string_view hint;  // a whole sentence: "use quire chat MODEL"
};

std::span<const OtherCommand> other_commands();
const OtherCommand* find_other_command(std::string_view name);

}  // namespace quire::app
