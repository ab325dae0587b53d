// Widens blocks for the comparison with gguf's own dequantisation.
//   blocks_tool TYPE    standard input: whole blocks; standard output: their numbers in f32
//   blocks_tool         standard output: one line for each type: name, elements, bytes
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "core/backend/weights/blocks.h"

int main(int argc, char** argv) {
  using namespace quire::backend;
  if (argc < 2) {
    for (const BlockLayout& one : block_layouts_of_files())
      std::cout << one.name << " " << one.elements << " " << one.bytes << "\n";
    return 0;
  }
  const auto type = block_type_named(argv[1]);
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  if (!type || bytes.size() % layout_of(*type).bytes != 0) return 1;
  std::vector<float> numbers(bytes.size() / layout_of(*type).bytes * layout_of(*type).elements);
  widen_blocks(*type, reinterpret_cast<const std::byte*>(bytes.data()), numbers);
  std::cout.write(reinterpret_cast<const char*>(numbers.data()),
                  static_cast<std::streamsize>(numbers.size() * sizeof(float)));
}
