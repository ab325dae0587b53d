#include "core/grammar/schema/document.h"

#include <charconv>
#include <utility>

#include "core/grammar/schema/keywords.h"

namespace quire::grammar {
namespace {

constexpr std::size_t kMaxShown = 100;

// Decodes the fragment of a URI: %25 → %.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Decodes one step of a JSON pointer: ~1 → /, ~0 → ~.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1');
    out += escape ? (text[i + 1] == '0' ? '~' : '/') : text[i];
    i += escape ? 1 : 0;
  }
  return out;
}

std::string_view without_slash(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  return uri;
}

std::string_view string_at(const json::Object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace

std::string shown(std::string_view text) {
  if (text.size() <= kMaxShown) return std::string(text);
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // never cuts a character
  return std::string(text.substr(0, end)) + "...";
}

Document::Document(const json::Value& root, std::uint32_t max_schemas, StateBudget& budget)
    : root_(root), max_schemas_(max_schemas), budget_(budget), schemas_{{&true_, "true"}, {&false_, "false"}} {
  read_draft();
}

std::string Document::step(const std::string& pointer, std::string_view name) const {
  std::string out = pointer + "/";
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  budget_.step_over(out);
  return out;
}

void Document::refuse(SchemaId at, std::string_view keyword, std::string message) const {
  throw Refusal{keyword.empty() ? pointer(at) : step(pointer(at), keyword), std::move(message)};
}

void Document::refuse_too_large(SchemaId at, std::uint32_t max_states) const {
  refuse(at, "",
         "needs more than " + std::to_string(max_states) +
             " states for patterns, formats and keys: simplify the patterns, or lower their counts or maxLength");
}

void Document::read_draft() {
  const auto* object = root_.if_object();
  const auto* schema = object == nullptr ? nullptr : object->if_contains("$schema");
  if (schema == nullptr) return;
  static constexpr std::string_view kOld[] = {"http://json-schema.org/draft-07/schema",
                                              "https://json-schema.org/draft/2019-09/schema"};
  const std::string_view uri = without_slash(string_at(*object, "$schema"));
  for (const std::string_view old : kOld) old_draft_ |= uri == old || uri == "https" + std::string(old.substr(4));
  if (!old_draft_ && uri != "https://json-schema.org/draft/2020-12/schema") {
    throw Refusal{"/$schema", "is not a supported draft (7, 2019-09, 2020-12)"};
  }
}

SchemaId Document::add(const json::Value& value, std::string pointer) {
  if (value.is_bool()) return value.get_bool() ? kAnything : kNothing;
  if (const auto found = numbers_.find(&value); found != numbers_.end()) return found->second;
  if (!value.is_object()) throw Refusal{pointer, "is not a schema: expected an object, true or false"};
  if (schemas_.size() - 2 >= max_schemas_) {
    throw Refusal{pointer, "exceeds the limit of " + std::to_string(max_schemas_) + " schemas in a document"};
  }
  check_keywords(value.get_object(), pointer);
  const auto id = static_cast<SchemaId>(schemas_.size());
  schemas_.push_back({&value, std::move(pointer)});
  numbers_.emplace(&value, id);
  return id;
}

void Document::check_keywords(const json::Object& object, const std::string& pointer) const {
  for (const auto& item : object) {
    const std::string_view name = item.name;
    const Keyword* keyword = find_keyword(name);
    if (keyword == nullptr) {
      throw Refusal{step(pointer, name), "is an unknown keyword: leave it out, or begin its name with x-"};
    }
    if (keyword->use == KeywordUse::kRefused) {
      throw Refusal{step(pointer, name), "is not supported: " + std::string(keyword->note)};
    }
    const bool at_root = pointer.empty();
    if ((name == "$id" || name == "$schema") && !at_root) {
      throw Refusal{step(pointer, name), "is supported only at the root of the document"};
    }
    if (name == "nullable" && !(item.value.is_bool() && !item.value.get_bool())) {
      throw Refusal{step(pointer, name), "is not supported: " + std::string(keyword->note)};
    }
  }
}

SchemaId Document::below(SchemaId parent, std::string_view keyword) {
  return add(object(parent)->at(keyword), step(pointer(parent), keyword));
}

SchemaId Document::below(SchemaId parent, std::string_view keyword, std::string_view name) {
  return add(object(parent)->at(keyword).get_object().at(name), step(step(pointer(parent), keyword), name));
}

SchemaId Document::below(SchemaId parent, std::string_view keyword, std::size_t index) {
  return add(object(parent)->at(keyword).get_array().at(index),
             step(step(pointer(parent), keyword), std::to_string(index)));
}

SchemaId Document::target(SchemaId from, std::string_view reference) {
  const auto* root = root_.if_object();
  const std::string_view id = root == nullptr ? std::string_view() : without_slash(string_at(*root, "$id"));
  if (!id.empty() && reference.starts_with(id) && (reference.size() == id.size() || reference[id.size()] == '#')) {
    reference.remove_prefix(id.size());
  }
  if (!reference.empty() && reference.front() != '#') {
    refuse(from, "$ref", "refers to another document: put the schema into $defs and refer to \"#/$defs/...\"");
  }
  const std::string path = decoded(reference.empty() ? reference : reference.substr(1));
  if (path.empty() || path.front() == '/') {
    Place place = follow(from, path);
    return add(*place.value, std::move(place.pointer));
  }
  if (!anchors_) {
    anchors_.emplace();
    find_anchors(root_, "");
  }
  const auto found = anchors_->find(path);
  if (found == anchors_->end()) refuse(from, "$ref", "names the anchor \"" + shown(path) + "\", which does not exist");
  return add(*found->second.value, found->second.pointer);
}

Document::Place Document::follow(SchemaId from, std::string_view path) const {
  Place at{&root_, ""};
  const auto lost = [&]() { refuse(from, "$ref", "refers to \"#" + shown(path) + "\", which does not exist"); };
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string name = unescaped(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.find('/'), rest.size()));
    if (at.value != &root_ && at.value->is_object() && !string_at(at.value->get_object(), "$id").empty()) {
      refuse(from, "$ref", "refers through a schema with its own $id, which is not supported");
    }
    const json::Value* next = nullptr;
    if (const auto* object = at.value->if_object()) {
      next = object->if_contains(name);
    } else if (const auto* array = at.value->if_array()) {
      std::size_t index = 0;
      const auto end = std::from_chars(name.data(), name.data() + name.size(), index).ptr;
      if (end == name.data() + name.size() && !name.empty()) next = index < array->size() ? &(*array)[index] : nullptr;
    }
    if (next == nullptr) lost();
    at = {next, step(at.pointer, name)};
  }
  return at;
}

void Document::find_anchors(const json::Value& value, const std::string& pointer) {
  const auto* object = value.if_object();
  if (object == nullptr) return;
  for (const std::string_view keyword : {"$anchor", "$dynamicAnchor"}) {
    const std::string_view name = string_at(*object, keyword);
    if (!name.empty()) anchors_->emplace(std::string(name), Place{&value, pointer});
  }
  for (const auto& item : *object) {
    const Keyword* keyword = find_keyword(item.name);
    if (keyword == nullptr || keyword->holds == KeywordHolds::kNoSchema) continue;
    const std::string here = step(pointer, item.name);
    if (keyword->holds == KeywordHolds::kSchema) find_anchors(item.value, here);
    if (const auto* list = item.value.if_array()) {
      for (std::size_t i = 0; i < list->size(); ++i) find_anchors((*list)[i], step(here, std::to_string(i)));
    }
    if (const auto* named = item.value.if_object(); named && keyword->holds == KeywordHolds::kNamedSchemas) {
      for (const auto& one : *named) find_anchors(one.value, step(here, one.name));
    }
  }
}

}  // namespace quire::grammar
