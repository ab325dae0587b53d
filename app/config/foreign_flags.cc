#include "app/config/foreign_flags.h"

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

template <typename Matches>
const ForeignFlag* first_row(Matches matches) {
  for (const auto rows : {vllm_flags(), llama_flags()}) {
    const auto at = std::ranges::find_if(rows, matches);
    if (at != rows.end()) return &*at;
  }
  return nullptr;
}

const ForeignFlag* find_row(std::string_view name) {
  return first_row([&](const ForeignFlag& row) { return row.name == name; });
}

template <typename Use>
void for_each_part(std::string_view list, Use use) {  // of "a|b|c"
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find('|'));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    use(one);
  }
}

bool has_part(std::string_view list, std::string_view part) {
  bool has = false;
  for_each_part(list, [&](std::string_view one) { has = has || one == part; });
  return has;
}

// The row whose other spellings have `word`.
const ForeignFlag* row_spelled(std::string_view word) {
  return first_row([&](const ForeignFlag& row) { return has_part(row.others, word); });
}

// Another spelling's name: "gpu-layers" is n-gpu-layers.
std::string main_name(const std::string& name) {
  const ForeignFlag* row = find_field(name) == nullptr ? row_spelled("--" + name) : nullptr;
  return row == nullptr ? name : std::string(row->name);
}

// The unit of a plain number, if the row has one.
std::string_view unit_of(const ForeignFlag& row) {
  const std::size_t colon = row.to.find(':');
  return colon == row.to.npos ? "" : row.to.substr(colon + 1);
}

bool is_accepted(std::string_view accepted, std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return has_part(accepted, lower);
}

// Our value for one of theirs; empty if theirs stands for nothing here. No value if the row does not accept it.
std::optional<std::string> our_value(const ForeignFlag& row, const std::string& value) {
  std::optional<std::string> out;
  std::optional<std::string> other;
  if (row.values.empty()) return value;
  for_each_part(row.values, [&](std::string_view one) {
    const std::string_view theirs = one.substr(0, one.find('='));
    const bool is_same = theirs.size() == one.size();
    const std::string ours = is_same ? value : std::string(one.substr(theirs.size() + 1));
    if (theirs == value) out = ours;
    if (theirs == "*") other = ours;
  });
  return out ? out : other;
}

// "q8_0, q4_0": the values that a row lists.
std::string listed_values(const ForeignFlag& row) {
  std::string out;
  for_each_part(row.values, [&](std::string_view one) {
    out += fmt::format("{}{}", out.empty() ? "" : ", ", one.substr(0, one.find('=')));
  });
  return out;
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
  const std::string_view spelled = arg.substr(0, arg.find('='));
  const ForeignFlag* row = row_spelled(spelled);
  const bool negated = row == nullptr && spelled.starts_with("-no-");
  if (negated) row = row_spelled("-" + std::string(spelled.substr(4)));
  const bool is_level = row == nullptr && arg.starts_with("-O");  // vLLM's "-O3"
  if (is_level) row = row_spelled("-O");
  if (row == nullptr) return std::nullopt;
  Word word{std::string(is_level ? "-O" : spelled), std::string(row->name), negated, false, {}, std::nullopt};
  if (is_level) word.value = std::string(arg.substr(2));
  if (!is_level && spelled.size() < arg.size()) word.value = std::string(arg.substr(spelled.size() + 1));
  return word;
}

std::optional<Word> word_of(std::string_view arg) {
  if (!arg.starts_with("--")) return short_word(arg);
  const std::size_t equals = arg.find('=');
  Word word;
  word.given = std::string(arg.substr(0, equals));
  if (equals != arg.npos) word.value = std::string(arg.substr(equals + 1));
  const std::string whole = with_dashes(std::string_view(word.given).substr(2));
  const std::string base = whole.substr(0, whole.find('.'));  // some names have a point, too
  for (const std::string& name : {whole, base}) {
    for (const bool negated : {false, true}) {
      if (negated && !name.starts_with("no-")) continue;
      word.name = main_name(negated ? name.substr(3) : name);
      word.negated = negated;
      word.dotted = name.size() != whole.size();
      if (find_field(word.name) == nullptr && find_row(word.name) == nullptr) continue;
      if (word.dotted) word.key = whole.substr(name.size() + 1);
      std::replace(word.key.begin(), word.key.end(), '-', '_');
      return word;
    }
  }
  return Word{word.given, whole, false, false, {}, word.value};  // unknown
}

// The word that set one of our fields, and the value: ours, and as typed.
struct Source {
  Word word;
  std::string value;
  std::string typed;
};

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
      const ForeignFlag* row = word ? find_row(word->name) : nullptr;
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
  void own(const Word& word, const Field& field, const ForeignFlag* row) {
    const auto values = values_of(word, field.is_list() ? Arity::kMany : Arity::kOne, "");
    if (!values) return;
    if (!field.is_list()) sets(word, field, values->front(), values->front());
    for (const std::string& value : *values) {
      const bool plain = value.find_first_not_of("0123456789.") == value.npos;
      const std::string_view unit = row != nullptr && plain ? unit_of(*row) : "";
      out_.args.push_back(fmt::format("{}={}{}", flag_of(field), value, unit));
    }
    model_seen_ = model_seen_ || field.name == "model";
    if (is_json(field.name)) json_given_.emplace(field.name);
  }

  void theirs(const Word& word, const ForeignFlag& row) {
    const auto values = values_of(word, word.dotted ? Arity::kOne : row.arity, row.to);
    if (!values) return;
    const bool switched_off = word.negated;
    if (word.dotted && is_json(row.name)) return part(row.name, word.key, values->front());
    if (const std::size_t dot = row.to.find('.'); row.treatment == Treatment::kMapped && dot != row.to.npos) {
      const std::optional<std::string> value = our_value(row, values->front());
      return value ? part(row.to.substr(0, dot), row.to.substr(dot + 1), *value) : not_accepted(word, row, *values);
    }
    if (const bool fixed = row.to.find('=') != row.to.npos; row.treatment == Treatment::kMapped && fixed) {
      if (!switched_off) out_.args.push_back(fmt::format("--{}", row.to));
      return;
    }
    if (row.treatment == Treatment::kMapped) {
      return mapped(word, row,
                    row.arity != Arity::kNone ? *values : std::vector<std::string>{switched_off ? "off" : "on"});
    }
    const bool fits = row.to.empty() || (row.arity == Arity::kMaybe && values->empty()) ||
                      (values->size() == 1 && is_accepted(row.to, values->front()));
    if ((row.treatment == Treatment::kNoted && fits) || (row.treatment == Treatment::kRefused && switched_off)) {
      noted(word, row);
    } else if (row.treatment == Treatment::kRefused) {
      problems_.push_back(fmt::format("{}: refused: {}", log_safe(word.given), row.text));
    } else {
      not_accepted(word, row, *values);
    }
  }

  void noted(const Word& word, const ForeignFlag& row) {
    out_.notes.push_back(fmt::format("{}: accepted, has no effect: {}", log_safe(word.given), row.text));
  }

  void not_accepted(const Word& word, const ForeignFlag& row, const std::vector<std::string>& values) {
    problems_.push_back(fmt::format("{} {}: refused, only {} is accepted{}{}", log_safe(word.given),
                                    log_safe(values.empty() ? "" : values.front()),
                                    row.treatment == Treatment::kMapped ? listed_values(row) : std::string(row.to),
                                    row.text.empty() ? "" : ": ", row.text));
  }

  void mapped(const Word& word, const ForeignFlag& row, const std::vector<std::string>& values) {
    const std::optional<std::string> value = our_value(row, values.front());
    if (!value) return not_accepted(word, row, values);
    if (value->empty() && !values.front().empty()) return noted(word, row);
    const Field& field = *find_field(row.to.substr(0, row.to.find(':')));
    if (!field.is_list()) sets(word, field, *value, values.front());
    model_seen_ = model_seen_ || field.name == "model";
    out_.args.push_back(fmt::format("{}={}{}", flag_of(field), *value, unit_of(row)));
  }

  // Reports two flags that set `field` to different values. MODEL given twice is reported by the parser.
  void sets(const Word& word, const Field& field, const std::string& value, const std::string& typed) {
    if (field.name == "model") return;
    const auto [at, is_first] = set_.try_emplace(field.name, Source{word, value, typed});
    const Source& other = at->second;
    if (!is_first && other.word.name != word.name && other.value != value) {
      problems_.push_back(fmt::format("{} {} and {} {}: both set {}: leave one of them out", log_safe(other.word.given),
                                      log_safe(other.typed), log_safe(word.given), log_safe(typed), flag_of(field)));
    }
    at->second = {word, value, typed};
  }

  // One key of a JSON flag. A value that is not JSON is taken as a string.
  void part(std::string_view flag, std::string_view key, const std::string& value) {
    boost::json::error_code error;
    boost::json::value read = boost::json::parse(value, error);
    parts_[std::string(flag)][key] = error ? boost::json::value(value) : std::move(read);
  }

  void put_parts_together() {
    for (auto& [flag, parts] : std::exchange(parts_, {})) {
      if (flag == "speculative-config" && parts.contains("model") && !parts.contains("method")) {
        parts["method"] = "draft_model";
      }
      if (json_given_.contains(flag))
        problems_.push_back(fmt::format("--{}: given as a whole and in parts: leave one of them out", flag));
      out_.args.push_back(fmt::format("--{}={}", flag, boost::json::serialize(parts)));
    }
  }

  // Takes the values of `word` from the arguments. Empty if one is missing, with a problem.
  // listed: the values of the row; an optional value must be one of them, or there is none.
  std::optional<std::vector<std::string>> values_of(const Word& word, Arity arity, std::string_view listed) {
    std::vector<std::string> values;
    if (word.value) values.push_back(*word.value);
    if (arity == Arity::kNone || word.value) return values;
    const auto next_is_value = [&] { return at_ < args_.size() && !args_[at_].starts_with("--"); };
    if (arity == Arity::kMaybe) {
      const bool takes = next_is_value() && (listed.empty() ? model_seen_ : is_accepted(listed, args_[at_]));
      if (takes) values.push_back(args_[at_++]);
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
  std::map<std::string_view, Source> set_;            // of each field that is set so far
  std::set<std::string, std::less<>> json_given_;     // JSON flags given as a whole
  std::map<std::string, boost::json::object> parts_;  // JSON flags given key by key
};

std::string treatment_text(const ForeignFlag& row) {
  std::string accepted;
  for_each_part(row.to,
                [&](std::string_view one) { accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", one); });
  switch (row.treatment) {
    case Treatment::kSame:
      return "same";
    case Treatment::kMapped:
      return fmt::format("mapped to `--{}`", row.to.substr(0, row.to.find(':')));  // "--flag.key", too
    case Treatment::kNoted:
      return row.to.empty() ? "noted" : "noted for " + accepted;
    case Treatment::kRefused:
      return "refused";
    case Treatment::kVllm:
      return "as vLLM's: " + treatment_text(*find_row(row.name));
  }
  return "";
}

std::string notes_text(const ForeignFlag& row) {
  std::string out(row.text);
  if (row.treatment == Treatment::kVllm) {
    const std::string_view theirs = find_row(row.name)->text;
    out = fmt::format("{}{}{}", theirs, out.empty() ? "" : "; ", out);
  }
  std::string values;
  for_each_part(row.values, [&](std::string_view one) {
    const std::string_view theirs = one.substr(0, one.find('='));
    const std::string_view ours = theirs.size() == one.size() ? theirs : one.substr(theirs.size() + 1);
    if (theirs != "*" && !ours.empty()) values += fmt::format("{}`{}`: `{}`", values.empty() ? "" : ", ", theirs, ours);
  });
  if (values.empty()) return out;
  return fmt::format("{}{}{}", out, out.empty() ? "" : ". ", values);
}

std::string rows_markdown(std::string_view program, std::span<const ForeignFlag> rows) {
  std::string out = fmt::format("| {} | here | notes |\n| --- | --- | --- |\n", program);
  for (const ForeignFlag& row : rows) {
    std::string others;
    for_each_part(row.others, [&](std::string_view one) { others += fmt::format(", `{}`", one); });
    out += fmt::format("| `--{}`{} | {} | {} |\n", row.name, others, treatment_text(row), notes_text(row));
  }
  return out;
}

constexpr std::string_view kTreatments =
    "*same*: the same flag. *mapped*: another name here. *noted*: accepted, has no effect, and is logged once at "
    "start; "
    "where values are listed, others are refused. *refused*: the server does not start, and reports the reason.\n";

}  // namespace

std::vector<std::string_view> foreign_names() {
  std::vector<std::string_view> out;
  for (const auto rows : {vllm_flags(), llama_flags()}) {
    for (const ForeignFlag& row : rows) out.push_back(row.name);
  }
  return out;
}

const ForeignFlag* find_foreign(std::string_view arg) {
  const std::optional<Word> word = arg.starts_with('-') ? word_of(arg) : std::nullopt;
  return word ? find_row(word->name) : nullptr;
}

Translated translate_foreign(std::span<const std::string> args, Problems& problems) {
  return Translator(args, problems).run();
}

std::string vllm_flags_markdown() {
  return fmt::format(
      "# vLLM's flags\n\n`quire serve` reads the command line of `vllm serve`: flags with dashes or underscores, "
      "`--flag value` and `--flag=value`, the `--no-` forms and the short forms.\n{}"
      "A flag that is in neither this table nor [flags.md](flags.md) nor [llama-flags.md](llama-flags.md) is an "
      "error.\n"
      "This page is the output of `quire serve --print-vllm-flags-markdown`.\n\n{}",
      kTreatments, rows_markdown("vLLM", vllm_flags()));
}

std::string llama_flags_markdown() {
  return fmt::format(
      "# llama.cpp's flags\n\n`quire serve` reads the command line of `llama-server`, in all its spellings: `-c 4096`, "
      "`--ctx-size 4096`, `-ngl 99`. A flag that vLLM has, too, has vLLM's meaning "
      "([vllm-flags.md](vllm-flags.md)).\n{}"
      "Flags of sampling set defaults in llama.cpp. Here they are refused, since answers would differ from what "
      "clients "
      "ask for elsewhere: a request has them, or the model's `generation_config.json`.\n"
      "The port is 8000 unless `--port` is given, not 8080.\n"
      "This page is the output of `quire serve --print-llama-flags-markdown`.\n\n{}",
      kTreatments, rows_markdown("llama.cpp", llama_flags()));
}

}  // namespace quire::app
