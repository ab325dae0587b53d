// Lets test_templates_equal_reference.py ask quire's chat templates: render_tool SECONDS < requests > answers.
// Shape   a request is a template and a JSON object of variables, each a u32 length and bytes. An answer is one byte, a u32
//         length and bytes: o the rendered text, p why the template was refused, r why rendering failed.
//         SECONDS since 1970, in UTC, are what strftime_now prints.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>

#include "core/base/json.h"
#include "core/chat/template.h"

namespace {

using quire::Result;
using quire::chat::Template;

bool read(std::string& text) {
  std::uint32_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(size);
  return static_cast<bool>(std::cin.read(text.data(), size));
}

void write(char what, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::cout.put(what);
  std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
  std::cout.write(text.data(), size);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: render_tool SECONDS < requests > answers\n";
    return 2;
  }
  const std::time_t seconds = std::atoll(argv[1]);
  const std::tm now = *std::gmtime(&seconds);
  std::string source, variables;
  while (read(source) && read(variables)) {
    const Result<Template> parsed = Template::parse(source);
    if (!parsed) {
      write('p', parsed.error().message);
      continue;
    }
    const quire::json::Object object = quire::json::parse(variables, 128)->get_object();
    const Result<std::string> text = parsed->render(object, now);
    write(text.ok() ? 'o' : 'r', text.ok() ? *text : text.error().message);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 2;
}
