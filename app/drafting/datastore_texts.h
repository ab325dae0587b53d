// The files of `quire build-datastore`, checked before anything is tokenised, their texts, and the key of the tokenizer
// that a datastore is good for (core/speculate/lookup/datastore.h).
// Shape   a file is one text in UTF-8, or several, separated by lines that contain only <|endoftext|>. A directory
//         stands for all regular files in it and below it, sorted by path, without the output file.
// Thread  main.
// Fails   StartError with the next step: a path that cannot be read, a file that is not text, an output that cannot be
//         written.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "core/model/source/model_files.h"

namespace quire::app {

// Hash of the model's tokenizer.json: a datastore can be used only with the tokenizer that it was built with.
std::uint64_t tokenizer_key(const model::ModelFiles& files);

// The files that `paths` stand for, in order; a path that is given twice is there twice.
std::vector<std::string> text_files(const std::vector<std::string>& paths, const std::string& output);
// Reads the regular files to the end and names those that are not text. Others, pipes for example, can be read only
// once: for_each_text() checks these.
void check_texts(const std::vector<std::string>& files);
// Checks that the output file can be made, before the work of an hour is lost.
void check_output(const std::string& output);

// Why these bytes are not text in UTF-8: "a zero byte at offset 8"; empty: they are.
std::optional<std::string> why_not_text(std::istream& in);

// Calls `take` with each text of the file that contains more than white space.
void for_each_text(std::istream& in, const std::function<void(const std::string&)>& take);

}  // namespace quire::app
