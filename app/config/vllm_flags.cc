#include "app/config/vllm_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "app/config/config_fields.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

// Settings in JSON, whose keys can also be given one by one.
constexpr std::string_view kJsonFlags[] = {"speculative-config", "kv-events-config"};

bool is_json(std::string_view name) { return std::ranges::find(kJsonFlags, name) != std::end(kJsonFlags); }

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

const VllmFlag* find_row(std::string_view name) {
  const auto rows = vllm_flags();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const VllmFlag& row) { return row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

// The unit of a plain number, if the row has one.
std::string_view unit_of(const VllmFlag& row) {
  const std::size_t colon = row.to.find(':');
  return colon == row.to.npos ? "" : row.to.substr(colon + 1);
}

bool is_accepted(std::string_view accepted, std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (std::string_view rest = accepted; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one == lower) return true;
  }
  return false;
}

// A parsed word of the command line: "--tensor_parallel_size=2", "-tp", "-O3", "--no-enable-lora".
struct Word {
  std::string given;  // as typed, without its value
  std::string name;   // with dashes, without "--", "no-" and anything after a point
  bool negated = false;
  bool dotted = false;  // "--compilation-config.mode": one key of a JSON value
  std::string key{};    // that key, with underscores
  std::optional<std::string> value;
};

std::optional<Word> short_word(std::string_view arg) {
  for (const VllmFlag& row : vllm_flags()) {
    if (row.short_name.empty() || !arg.starts_with(row.short_name)) continue;
    std::string_view rest = arg.substr(row.short_name.size());
    const bool takes_rest = row.short_name == "-O" || rest.empty() || rest.front() == '=';
    if (!takes_rest) continue;
    Word word{std::string(row.short_name), std::string(row.name), false, false, {}, std::nullopt};
    if (!rest.empty()) word.value = std::string(rest.front() == '=' ? rest.substr(1) : rest);
    return word;
  }
  return std::nullopt;
}

std::optional<Word> word_of(std::string_view arg) {
  if (!arg.starts_with("--")) return short_word(arg);
  const std::size_t equals = arg.find('=');
  Word word;
  word.given = std::string(arg.substr(0, equals));
  if (equals != arg.npos) word.value = std::string(arg.substr(equals + 1));
  const std::string name = with_dashes(std::string_view(word.given).substr(2));
  word.name = name.substr(0, name.find('.'));
  word.dotted = word.name.size() != name.size();
  if (word.dotted) word.key = name.substr(word.name.size() + 1);
  std::replace(word.key.begin(), word.key.end(), '-', '_');
  if (find_field(word.name) == nullptr && find_row(word.name) == nullptr && word.name.starts_with("no-")) {
    word.name.erase(0, 3);
    word.negated = true;
  }
  return word;
}

class Translator {
 public:
  Translator(std::span<const std::string> args, Problems& problems) : args_(args), problems_(problems) {}

  Translated run() {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_++];
      if (arg == "--") {
        put_parts_together();
        out_.args.insert(out_.args.end(), args_.begin() + static_cast<std::ptrdiff_t>(at_) - 1, args_.end());
        break;
      }
      const std::optional<Word> word = arg.starts_with('-') ? word_of(arg) : std::nullopt;
      const Field* field = word && !word->negated && !word->dotted ? find_field(word->name) : nullptr;
      const VllmFlag* row = word ? find_row(word->name) : nullptr;
      if (field != nullptr) {
        own(*word, *field, row);
      } else if (row != nullptr && !(word->negated && row->arity != Arity::kNone)) {
        theirs(*word, *row);
      } else {
        model_seen_ = model_seen_ || !word;
        out_.args.push_back(arg);
      }
    }
    put_parts_together();
    return std::move(out_);
  }

 private:
  void own(const Word& word, const Field& field, const VllmFlag* row) {
    const auto values = values_of(word, field.is_list() ? Arity::kMany : Arity::kOne);
    if (!values) return;
    for (const std::string& value : *values) {
      const bool plain = value.find_first_not_of("0123456789.") == value.npos;
      const std::string_view unit = row != nullptr && plain ? unit_of(*row) : "";
      out_.args.push_back(fmt::format("{}={}{}", flag_of(field), value, unit));
    }
    model_seen_ = model_seen_ || field.name == "model";
    if (is_json(field.name)) json_given_.emplace(field.name);
  }

  void theirs(const Word& word, const VllmFlag& row) {
    const auto values = values_of(word, word.dotted ? Arity::kOne : row.arity);
    if (!values) return;
    const bool switched_off = word.negated;
    if (word.dotted && is_json(row.name)) return part(row.name, word.key, values->front());
    if (const std::size_t dot = row.to.find('.'); row.treatment == Treatment::kMapped && dot != row.to.npos) {
      return part(row.to.substr(0, dot), row.to.substr(dot + 1), values->front());
    }
    if (row.treatment == Treatment::kMapped) {
      return mapped(row, row.arity != Arity::kNone ? values->front() : switched_off ? "off" : "on");
    }
    const bool fits = row.to.empty() || (values->size() == 1 && is_accepted(row.to, values->front()));
    if ((row.treatment == Treatment::kNoted && fits) || (row.treatment == Treatment::kRefused && switched_off)) {
      out_.notes.push_back(fmt::format("{}: accepted, has no effect: {}", log_safe(word.given), row.text));
    } else if (row.treatment == Treatment::kRefused) {
      problems_.push_back(fmt::format("{}: refused: {}", log_safe(word.given), row.text));
    } else {
      problems_.push_back(fmt::format("{} {}: refused, only {} is accepted: {}", log_safe(word.given),
                                      log_safe(values->empty() ? "" : values->front()), row.to, row.text));
    }
  }

  void mapped(const VllmFlag& row, const std::string& value) {
    out_.args.push_back(fmt::format("--{}={}{}", row.to.substr(0, row.to.find(':')), value, unit_of(row)));
  }

  // One key of a JSON flag. A value that is not JSON is taken as a string.
  void part(std::string_view flag, std::string_view key, const std::string& value) {
    boost::json::error_code error;
    boost::json::value read = boost::json::parse(value, error);
    parts_[std::string(flag)][key] = error ? boost::json::value(value) : std::move(read);
  }

  void put_parts_together() {
    for (const auto& [flag, parts] : std::exchange(parts_, {})) {
      if (json_given_.contains(flag))
        problems_.push_back(fmt::format("--{}: given as a whole and in parts: leave one of them out", flag));
      out_.args.push_back(fmt::format("--{}={}", flag, boost::json::serialize(parts)));
    }
  }

  // Takes the values of `word` from the arguments. Empty if one is missing, with a problem.
  std::optional<std::vector<std::string>> values_of(const Word& word, Arity arity) {
    std::vector<std::string> values;
    if (word.value) values.push_back(*word.value);
    if (arity == Arity::kNone || word.value) return values;
    const auto next_is_value = [&] { return at_ < args_.size() && !args_[at_].starts_with("--"); };
    if (arity == Arity::kMaybe) {
      if (model_seen_ && next_is_value()) values.push_back(args_[at_++]);
      return values;
    }
    if (!next_is_value()) {
      problems_.push_back(fmt::format("{}: expected a value", log_safe(word.given)));
      return std::nullopt;
    }
    values.push_back(args_[at_++]);
    while (arity == Arity::kMany && model_seen_ && at_ < args_.size() && !args_[at_].starts_with('-')) {
      values.push_back(args_[at_++]);
    }
    return values;
  }

  std::span<const std::string> args_;
  Problems& problems_;
  Translated out_;
  std::size_t at_ = 0;
  bool model_seen_ = false;
  std::set<std::string, std::less<>> json_given_;     // JSON flags given as a whole
  std::map<std::string, boost::json::object> parts_;  // JSON flags given key by key
};

}  // namespace

Translated translate_vllm(std::span<const std::string> args, Problems& problems) {
  return Translator(args, problems).run();
}

std::string vllm_flags_markdown() {
  std::string out =
      "# vLLM's flags\n\n`quire serve` reads the command line of `vllm serve`: flags with dashes or underscores, "
      "`--flag value` and `--flag=value`, the `--no-` forms and the short forms.\n*same*: the same flag. *mapped*: "
      "another name here. *noted*: accepted, has no effect, and is logged once at start; where values are listed, "
      "others are refused. *refused*: the server does not start, and reports the reason.\nA flag that is in neither "
      "this table nor [flags.md](flags.md) is an error.\nThis page is the output of `quire serve "
      "--print-vllm-flags-markdown`.\n\n| vLLM | here | notes |\n| --- | --- | --- |\n";
  for (const VllmFlag& row : vllm_flags()) {
    std::string here;
    std::string accepted(row.to);
    for (std::size_t at = 0; (at = accepted.find('|', at)) != accepted.npos; at += 2) accepted.replace(at, 1, ", ");
    switch (row.treatment) {
      case Treatment::kSame:
        here = "same";
        break;
      case Treatment::kMapped:
        here = fmt::format("mapped to `--{}`", row.to.substr(0, row.to.find(':')));  // "--flag.key", too
        break;
      case Treatment::kNoted:
        here = row.to.empty() ? "noted" : "noted for " + accepted;
        break;
      case Treatment::kRefused:
        here = "refused";
        break;
    }
    const std::string short_name = row.short_name.empty() ? "" : fmt::format(", `{}`", row.short_name);
    out += fmt::format("| `--{}`{} | {} | {} |\n", row.name, short_name, here, row.text);
  }
  return out;
}

}  // namespace quire::app
