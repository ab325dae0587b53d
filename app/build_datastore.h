// quire build-datastore: texts as the model's tokens, in the file that retrieval drafts from (core/speculate/lookup/datastore.h).
//   file or directory → texts → tokens → sorted places → file
// Shape   a file is one text, or several where lines that are just <|endoftext|> stand between them. Of a directory all regular
//         files are read, those of the directories below it too, in the order of their paths.
// Thread  main.
// Fails   StartError: a path that cannot be read, no text at all, more tokens than a store holds, an output that cannot be written.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "core/model/model_files.h"

namespace quire::app {

// Stands for the model's tokenizer: a datastore is good for the one that it was built with.
std::uint64_t tokenizer_key(const model::ModelFiles& files);

// The files that are meant, each once as it was named.
std::vector<std::string> text_files(const std::vector<std::string>& paths);
// Each text of a file that has more than white space.
void for_each_text(std::istream& in, const std::function<void(const std::string&)>& take);

}  // namespace quire::app
