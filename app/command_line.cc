// The only unit that includes CLI11.
#include "app/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "api/chat/chat_request.h"
#include "api/keys/key_file.h"
#include "api/messages/messages_request.h"
#include "api/openai/completions/request.h"
#include "api/openai/embeddings/request.h"
#include "api/openai/fields/markdown.h"
#include "api/responses/responses_request.h"
#include "app/bench/options.h"
#include "app/config_fields.h"
#include "app/units.h"
#include "app/version.h"
#include "app/vllm_flags.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

std::string api_markdown() {
  using api::openai::fields_markdown;
  return api::openai::headers_markdown() + "\n" + api::openai::answer_headers_markdown() + "\n" +
         fields_markdown(api::openai::kCompletions, api::openai::completion_fields()) + "\n" +
         fields_markdown(api::openai::kChat, api::chat::chat_fields()) + "\n" +
         fields_markdown(api::openai::kEmbeddings, api::openai::embedding_fields()) + "\n" +
         fields_markdown(api::openai::kResponses, api::responses::responses_fields()) + "\n" +
         fields_markdown(api::openai::kMessages, api::messages::messages_fields());
}

// Settings as CLI11 collects them: what was typed, by field.
using Typed = std::map<std::string_view, std::vector<std::string>>;

void add_fields(CLI::App& command, CommandSet bit, Typed& typed) {
  for (const Field& field : fields()) {
    if ((field.commands & bit) == 0) continue;
    std::string names = flag_of(field);
    if (field.name == "model") names += ",MODEL";
    std::string help(field.help);
    help += fmt::format(" [{}{}{}]", field.fallback.empty() ? "" : fmt::format("{}; ", field.fallback),
                        field.range.empty() ? "" : fmt::format("{}; ", range_text(field)), environment_of(field));
    CLI::Option* option = command.add_option(names, typed[field.name], help)->type_name(kind_of(field))->expected(1);
    // Of MODEL all are taken, too, so that a second one can be refused.
    const bool take_all = field.is_list() || field.name == "model";
    if (!take_all) option->allow_extra_args(false);  // the word behind the value is MODEL
    option->multi_option_policy(take_all ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
  }
}

// One option of a command itself, converted after parsing, so that all problems are told at once.
template <typename T>
void convert(const std::string& flag, const std::string& text, double low, double high, std::optional<T>& out,
             Problems& problems) {
  if (text.empty()) return;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  // The comparison is false for a NaN, too.
  if (whole && static_cast<double>(value) >= low && static_cast<double>(value) <= high) {
    out = value;
  } else {
    problems.push_back(fmt::format("{} '{}': expected a number in {}..{}", flag, log_safe(text), low, high));
  }
}

constexpr std::string_view kCommandsText = "serve, generate, bench, inspect, build-datastore or key";

class Parser {
 public:
  Parser() {
    app_.require_subcommand(0, 1);
    app_.set_help_flag("-h,--help", "what there is");
    app_.set_version_flag("--version", fmt::format("quire {}", kVersion), "print the version");
    app_.allow_extras();
    app_.footer("Settings can also be given as QUIRE_… variables or in a TOML file: see docs/flags.md.");
    for (CLI::App* command : {serve_, generate_, bench_, inspect_, build_datastore_, key_}) command->allow_extras();
    add_fields(*serve_, kServe, typed_);
    add_fields(*generate_, kGenerate, typed_);
    add_fields(*bench_, kBench, typed_);
    add_fields(*inspect_, kInspect, typed_);
    add_fields(*build_datastore_, kBuildDatastore, typed_);
    serve_->add_flag("--plan", out_.serve.plan,
                     "print the bytes, blocks and sequences that serving would take, and end");
    serve_->add_flag("--print-flags-markdown", print_flags_, "")->group("");
    serve_->add_flag("--print-vllm-flags-markdown", print_vllm_flags_, "")->group("");
    serve_->add_flag("--print-api-markdown", print_api_, "")->group("");
    generate_->add_option("--prompt", out_.generate.prompt, "what to go on from")->type_name("text")->required();
    generate_->add_option("--max-tokens", max_tokens_, "longest answer [256, or what fits]")->type_name("count");
    generate_->add_option("--temperature", temperature_, "0 is greedy [the model's, or 1; 0..2]")->type_name("number");
    generate_->add_option("--top-p", top_p_, "keep the likeliest tokens of this mass [0..1]")->type_name("number");
    generate_->add_option("--min-p", min_p_, "keep tokens this likely, as a part of the likeliest [0..1]")
        ->type_name("number");
    generate_->add_option("--top-k", top_k_, "keep the k likeliest tokens; 0 or -1 keeps all")->type_name("count");
    generate_->add_option("--seed", seed_, "the same seed gives the same text [drawn and printed]")
        ->type_name("number");
    generate_->add_option("--stop", out_.generate.stop, "end before this text; repeatable")
        ->type_name("text")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_bench_flags();
    inspect_->add_option("--url", out_.inspect.url, "a running server, whose cache is looked at instead of a model")
        ->type_name("text");
    build_datastore_
        ->add_option("--text", out_.build_datastore.texts, "file of text, or directory of such files; repeatable")
        ->type_name("text")
        ->expected(1)
        ->allow_extra_args(false)  // the word behind the value is MODEL
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->required();
    build_datastore_->add_option("--output", out_.build_datastore.output, "the file to write")
        ->type_name("text")
        ->required();
    add_key_flags();
    for (CLI::App* command : {inspect_, bench_}) command->add_flag("--json", json_, "print JSON");
  }

  CommandLine parse(std::vector<std::string> args, Problems& problems) {
    if (!args.empty() && args.front() == "serve") {
      Translated translated = translate_vllm(std::span(args).subspan(1), problems);
      args = std::move(translated.args);
      args.insert(args.begin(), "serve");
      out_.notes = std::move(translated.notes);
    }
    try {
      std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
      app_.parse(args);
    } catch (const CLI::CallForVersion& version) {
      return print(std::string(version.what()) + "\n");
    } catch (const CLI::CallForHelp&) {
      const auto chosen = app_.get_subcommands();
      return print(chosen.empty() ? app_.help() : chosen.front()->help("quire"));
    } catch (const CLI::ParseError& error) {
      problems.push_back(error.what());
      return std::move(out_);
    }
    if (print_flags_) return print(flags_markdown());
    if (print_vllm_flags_) return print(vllm_flags_markdown());
    if (print_api_) return print(api_markdown());
    take_command(problems);
    return std::move(out_);
  }

 private:
  CommandLine print(std::string text) {
    out_.command = Command::kPrint;
    out_.text = std::move(text);
    return std::move(out_);
  }

  void add_key_flags() {
    const auto add = [this](const char* name, std::string& out, const char* help, const char* kind) {
      return key_->add_option(name, out, help)->type_name(kind)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    add("--name", out_.key.name, "whose it is: 1 to 64 letters, digits and - _ .; in metrics, too", "text")->required();
    add("--role", key_role_, "what it may do: all but /admin, only /metrics, or everything [user; user|monitor|admin]",
        "choice");
    key_->add_flag("--admin", key_admin_, "short for --role admin");
    add("--max-running", key_running_, "sequences under way at once, waiting ones included [any number]", "count");
    add("--max-queued", key_queued_, "sequences that wait at once [any number]", "count");
    add("--tokens-per-minute", key_tokens_, "tokens of prompts and answers [any number]", "count");
    add("--tenant", out_.key.tenant, "keys of one tenant share cached prefixes and a share of the machine [its name]",
        "text");
    add("--weight", key_weight_, "of the tenant's share under fair scheduling [1]", "count");
    add("--file", out_.key.file, "append the line to this file instead of printing it", "text");
  }

  void take_key_options(Problems& problems) {
    constexpr double kMost = 4294967295.0;
    KeyOptions& key = out_.key;
    convert("--max-running", key_running_, 1, kMost, key.limits.max_running, problems);
    convert("--max-queued", key_queued_, 1, kMost, key.limits.max_queued, problems);
    convert("--tokens-per-minute", key_tokens_, 1, kMost, key.limits.tokens_per_minute, problems);
    std::optional<std::uint32_t> weight;
    convert("--weight", key_weight_, 1, api::keys::kMaxWeight, weight, problems);
    key.weight = weight.value_or(key.weight);
    const std::string word = key_role_.empty() ? (key_admin_ ? "admin" : "user") : key_role_;
    const std::optional<api::keys::Role> role = api::keys::role_of(word);
    if (!role) problems.push_back(fmt::format("--role '{}': expected user, monitor or admin", log_safe(word)));
    key.role = role.value_or(key.role);
    if (key_admin_ && key.role != api::keys::Role::kAdmin)
      problems.push_back("--admin and --role say different things");
    constexpr const char* kExpected = "expected 1 to 64 letters, digits and the characters - _ .";
    if (!api::keys::is_name(key.name))
      problems.push_back(fmt::format("--name '{}': {}", log_safe(key.name), kExpected));
    if (!key.tenant.empty() && !api::keys::is_name(key.tenant)) {
      problems.push_back(fmt::format("--tenant '{}': {}", log_safe(key.tenant), kExpected));
    }
  }

  void add_bench_flags() {
    bench_typed_.resize(bench_flags().size());
    for (std::size_t i = 0; i < bench_typed_.size(); ++i) {
      const BenchFlag& flag = bench_flags()[i];
      bench_->add_option(std::string(flag.name), bench_typed_[i], std::string(flag.help))
          ->type_name(std::string(flag.kind))
          ->expected(1)
          ->allow_extra_args(false)  // the word behind the value is MODEL
          ->multi_option_policy(flag.name == "--url" ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::TakeLast);
    }
  }

  void take_command(Problems& problems) {
    const auto chosen = app_.get_subcommands();
    const std::vector<std::string> unknown = chosen.empty() ? app_.remaining() : chosen.front()->remaining();
    if (chosen.empty()) {
      problems.push_back(unknown.empty() ? "a command is needed: " + std::string(kCommandsText) + " (quire --help)"
                                         : unknown_command(unknown.front()));
      return;
    }
    bool flag_unknown = false;
    for (const std::string& word : unknown) {
      if (!word.starts_with('-')) continue;
      flag_unknown = true;
      problems.push_back(unknown_flag(word, *chosen.front()));
    }
    const std::vector<std::string>& models = typed_["model"];
    if (models.size() > 1 && !flag_unknown) {  // else it may be the value of the flag that is not known
      problems.push_back(fmt::format("unexpected word {}: there is one MODEL", log_safe(models[1])));
    }
    if (chosen.front() == key_ && !unknown.empty() && !flag_unknown) {
      problems.push_back(fmt::format("unexpected word {}: key takes flags only", log_safe(unknown.front())));
    }
    for (auto& [name, values] : typed_) {
      if (!values.empty()) out_.flags[std::string(name)] = Setting{fmt::format("--{}", name), std::move(values)};
    }
    out_.command = chosen.front() == serve_      ? Command::kServe
                   : chosen.front() == generate_ ? Command::kGenerate
                   : chosen.front() == bench_    ? Command::kBench
                   : chosen.front() == inspect_  ? Command::kInspect
                   : chosen.front() == key_      ? Command::kKey
                                                 : Command::kBuildDatastore;
    take_options(problems);
  }

  void take_options(Problems& problems) {
    GenerateOptions& generate = out_.generate;
    convert("--max-tokens", max_tokens_, 1, 16777216, generate.max_tokens, problems);
    convert("--temperature", temperature_, 0, 2, generate.temperature, problems);
    convert("--top-p", top_p_, 1e-6, 1, generate.top_p, problems);
    convert("--min-p", min_p_, 0, 1, generate.min_p, problems);
    convert("--top-k", top_k_, -1, 16777216, generate.top_k, problems);
    convert("--seed", seed_, 0, 18446744073709551615.0, generate.seed, problems);
    if (out_.command == Command::kKey) take_key_options(problems);
    if (out_.command == Command::kBench) out_.bench = read_bench_options(bench_typed_, json_, problems);
    const bool takes_no_model = out_.bench.mode == BenchMode::kCompare || out_.bench.mode == BenchMode::kMicro;
    if (takes_no_model && out_.flags.contains("model")) {
      problems.push_back("this --mode runs no model of ours: leave MODEL out");
    }
    out_.inspect.json = json_;
    if (!out_.inspect.url.empty() && out_.flags.contains("model")) {
      problems.push_back("--url looks at a running server: leave MODEL out");
    }
  }

  static const Field* field_named(const std::string& word) {
    if (!word.starts_with("--")) return nullptr;
    std::string name = word.substr(2, word.find('=') - 2);
    std::replace(name.begin(), name.end(), '_', '-');
    return find_field(name);
  }

  // A flag of other commands is named as theirs: to suggest it would go round in circles.
  static std::string unknown_flag(const std::string& word, const CLI::App& command) {
    const Field* field = field_named(word);
    const bool has = field != nullptr && command.get_option_no_throw(flag_of(*field)) != nullptr;
    if (field == nullptr || has) return unknown_text("flag", word, "--");
    return fmt::format("unknown flag {}: a flag of {}, not of {}", log_safe(word), commands_text(*field),
                       command.get_name());
  }

  static std::string unknown_command(const std::string& word) {
    if (field_named(word) != nullptr) {
      return fmt::format("a command is needed before {}: {}", log_safe(word), kCommandsText);
    }
    if (word.starts_with('-')) return unknown_text("flag", word, "--") + " (flags come after the command)";
    constexpr std::string_view kCommands[] = {"serve", "generate", "bench", "inspect", "build-datastore", "key"};
    const std::string suggestion = nearest(word, kCommands);
    return fmt::format(
        "unknown command {}: {}", log_safe(word),
        suggestion.empty() ? fmt::format("there are {}", kCommandsText) : fmt::format("did you mean {}?", suggestion));
  }

  CLI::App app_{"An LLM server: OpenAI's completions API from a paged key/value cache.", "quire"};
  CLI::App* serve_ = app_.add_subcommand("serve", "answer the OpenAI completions API over HTTP");
  CLI::App* generate_ = app_.add_subcommand("generate", "go on from a prompt, on the terminal");
  CLI::App* bench_ = app_.add_subcommand(
      "bench", "measure steps, kernels, the engine or two servers, beside what this machine can do");
  CLI::App* inspect_ = app_.add_subcommand("inspect", "what is in a model, or what a running server's KV cache does");

  CLI::App* build_datastore_ = app_.add_subcommand(
      "build-datastore", "put texts into the file that speculation by retrieval (rest) guesses from");

  CLI::App* key_ = app_.add_subcommand("key", "make an API key, and the line of --api-key-file for it");

  CommandLine out_;
  Typed typed_;
  std::string key_role_, key_running_, key_queued_, key_tokens_, key_weight_;
  bool key_admin_ = false;
  std::string max_tokens_, temperature_, top_p_, min_p_, top_k_, seed_;
  TypedBenchFlags bench_typed_;
  bool json_ = false;
  bool print_flags_ = false;
  bool print_api_ = false;
  bool print_vllm_flags_ = false;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems) {
  return Parser().parse(args, problems);
}

}  // namespace quire::app
