// The texts that `quire build-datastore` makes a datastore of, and the key of the tokenizer that it is good for
// (core/speculate/lookup/datastore.h).
// Shape   a file is one text, or several, separated by lines that contain only <|endoftext|>. A directory stands for
//         all regular files in it and below it, sorted by path.
// Thread  main.
// Fails   StartError: a path that cannot be read.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "core/model/source/model_files.h"

namespace quire::app {

// Hash of the model's tokenizer.json: a datastore can be used only with the tokenizer that it was built with.
std::uint64_t tokenizer_key(const model::ModelFiles& files);

// The files that `paths` stand for, in order; a path that is given twice is there twice.
std::vector<std::string> text_files(const std::vector<std::string>& paths);
// Calls `take` with each text of the file that contains more than white space.
void for_each_text(std::istream& in, const std::function<void(const std::string&)>& take);

}  // namespace quire::app
