#include "app/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "api/chat/chat_request.h"
#include "api/completions/completion_request.h"
#include "api/embeddings/embedding_request.h"
#include "api/fields/markdown.h"
#include "api/limits/key_file.h"
#include "api/messages/messages_request.h"
#include "api/responses/responses_request.h"
#include "app/config/command_flags.h"
#include "app/config/units.h"
#include "app/config/version.h"
#include "app/config/vllm_flags.h"
#include "app/model/known_models.h"
#include "core/base/log.h"

namespace quire::app {
namespace {

std::string api_markdown() {
  using api::fields_markdown;
  return api::headers_markdown() + "\n" + api::answer_headers_markdown() + "\n" +
         fields_markdown(api::kCompletions, api::completion_fields()) + "\n" +
         fields_markdown(api::kChat, api::chat::chat_fields()) + "\n" +
         fields_markdown(api::kEmbeddings, api::embedding_fields()) + "\n" +
         fields_markdown(api::kResponses, api::responses::responses_fields()) + "\n" +
         fields_markdown(api::kMessages, api::messages::messages_fields());
}

// Converts the text of a command's own option after parsing, so that all problems are reported together.
template <typename T>
void convert(const std::string& flag, const std::string& text, std::type_identity_t<T> low,
             std::type_identity_t<T> high, std::optional<T>& out, Problems& problems) {
  if (text.empty()) return;
  out = number_in<T>(text, low, high);
  if (!out) problems.push_back(fmt::format("{} '{}': expected a number in {}..{}", flag, log_safe(text), low, high));
}

constexpr std::string_view kCommandsText =
    "serve, generate, bench, models, inspect, pull, list, rm, build-datastore or key";

class Parser {
 public:
  Parser() {
    app_.require_subcommand(0, 1);
    app_.set_help_flag("-h,--help", "print this help");
    app_.set_version_flag("--version", fmt::format("quire {}", kVersion), "print the version");
    app_.allow_extras();
    app_.footer("Settings can also be given as QUIRE_… variables or in a TOML file: see docs/flags.md.");
    for (CLI::App* command :
         {serve_, generate_, bench_, models_, inspect_, pull_, list_, remove_, build_datastore_, key_})
      command->allow_extras();
    add_fields(*serve_, kServe, typed_);
    add_fields(*generate_, kGenerate, typed_);
    add_fields(*inspect_, kInspect, typed_);
    add_fields(*pull_, kPull, typed_);
    add_fields(*list_, kList, typed_);
    add_fields(*remove_, kRemove, typed_);
    add_fields(*build_datastore_, kBuildDatastore, typed_);
    serve_->add_flag("--plan", out_.serve.plan,
                     "print the memory, blocks and sequences of a server, and exit without starting one");
    serve_->add_flag("--print-flags-markdown", print_flags_, "")->group("");
    serve_->add_flag("--print-vllm-flags-markdown", print_vllm_flags_, "")->group("");
    serve_->add_flag("--print-api-markdown", print_api_, "")->group("");
    models_->add_flag("--print-markdown", print_models_, "")->group("");
    models_->add_flag("--print-formats-markdown", print_formats_, "")->group("");
    generate_->add_option("--prompt", out_.generate.prompt, "text to continue")->type_name("text")->required();
    generate_->add_option("--max-tokens", max_tokens_, "maximum length of the answer in tokens [256, or what fits]")
        ->type_name("count");
    generate_->add_option("--temperature", temperature_, "sampling temperature; 0 is greedy [the model's, or 1; 0..2]")
        ->type_name("number");
    generate_->add_option("--top-p", top_p_, "keep the likeliest tokens whose probabilities add up to this [0..1]")
        ->type_name("number");
    generate_
        ->add_option("--min-p", min_p_,
                     "keep tokens whose probability is at least this share of the likeliest token's [0..1]")
        ->type_name("number");
    generate_->add_option("--top-k", top_k_, "keep this many likeliest tokens; 0 or -1 keeps all")->type_name("count");
    generate_
        ->add_option("--seed", seed_, "seed of the sampling; the same seed gives the same text [random, and printed]")
        ->type_name("number");
    generate_->add_option("--stop", out_.generate.stop, "end the answer before this text; repeatable")
        ->type_name("text")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    inspect_->add_option("--url", out_.inspect.url, "URL of a running server, to show its cache instead of a model")
        ->type_name("text");
    build_datastore_
        ->add_option("--text", out_.build_datastore.texts, "text file, or directory of text files; repeatable")
        ->type_name("text")
        ->expected(1)
        ->allow_extra_args(false)  // the word after the value is MODEL
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->required();
    build_datastore_->add_option("--output", out_.build_datastore.output, "file to write")
        ->type_name("text")
        ->required();
    add_key_flags();
    inspect_->add_flag("--json", out_.inspect.json, "print JSON");
    list_->add_flag("--json", out_.list.json, "print JSON");
    remove_->add_flag("-y,--yes", out_.remove.yes, "do not ask");
  }

  CommandLine parse(std::vector<std::string> args, Problems& problems) {
    if (!args.empty() && args.front() == "bench") {  // quire-bench parses the rest
      out_.command = Command::kBench;
      out_.bench_args.assign(args.begin() + 1, args.end());
      return std::move(out_);
    }
    if (!args.empty() && args.front() == "serve") {
      Translated translated = translate_vllm(std::span(args).subspan(1), problems);
      args = std::move(translated.args);
      args.insert(args.begin(), "serve");
      out_.notes = std::move(translated.notes);
    }
    try {
      std::reverse(args.begin(), args.end());  // CLI11 reads them from the back
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
    if (print_models_) return print(models_markdown());
    if (print_formats_) return print(formats_markdown());
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
    add("--name", out_.key.name, "name of the key, shown in metrics and in the log: 1 to 64 letters, digits and - _ .",
        "text")
        ->required();
    add("--role", key_role_,
        "permissions: user: all but /admin and /metrics; monitor: only /metrics; admin: everything [user; "
        "user|monitor|admin]",
        "choice");
    key_->add_flag("--admin", key_admin_, "same as --role admin");
    add("--max-running", key_running_, "maximum running and waiting sequences [unlimited]", "count");
    add("--max-queued", key_queued_, "maximum waiting sequences [unlimited]", "count");
    add("--tokens-per-minute", key_tokens_, "maximum tokens of prompts and answers in a minute [unlimited]", "count");
    add("--tenant", out_.key.tenant,
        "tenant: its keys share cached prefixes, and one share of the machine under policy fair [the key's name]",
        "text");
    add("--weight", key_weight_, "weight of the key within its tenant under policy fair [1]", "count");
    add("--file", out_.key.file, "append the line to this file instead of printing it", "text");
  }

  void take_key_options(Problems& problems) {
    constexpr std::uint32_t kMost = 4294967295u;
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
      problems.push_back("--admin and --role differ: leave one of them out");
    constexpr const char* kExpected = "expected 1 to 64 letters, digits and the characters - _ .";
    if (!api::keys::is_name(key.name))
      problems.push_back(fmt::format("--name '{}': {}", log_safe(key.name), kExpected));
    if (!key.tenant.empty() && !api::keys::is_name(key.tenant)) {
      problems.push_back(fmt::format("--tenant '{}': {}", log_safe(key.tenant), kExpected));
    }
  }

  void take_command(Problems& problems) {
    const auto chosen = app_.get_subcommands();
    // `bench` is a command only as the first word, and parse() has handled that.
    const bool none = chosen.empty() || chosen.front() == bench_;
    const std::vector<std::string> unknown = none ? app_.remaining() : chosen.front()->remaining();
    if (none) {
      problems.push_back(unknown.empty() ? "a command is required: " + std::string(kCommandsText) + " (quire --help)"
                                         : unknown_command(unknown.front()));
      return;
    }
    out_.flags = take_settings(*chosen.front(), typed_, problems);
    const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
    const bool takes_words = chosen.front() != key_ && chosen.front() != models_ && chosen.front() != list_;
    if (!takes_words && !unknown.empty() && std::ranges::none_of(unknown, is_flag)) {
      problems.push_back(
          fmt::format("unexpected word {}: {} takes no words", log_safe(unknown.front()), chosen.front()->get_name()));
    }
    if (chosen.front() == models_) {
      out_.command = Command::kPrint;
      out_.text = models_text();
      return;
    }
    out_.command = chosen.front() == serve_      ? Command::kServe
                   : chosen.front() == generate_ ? Command::kGenerate
                   : chosen.front() == inspect_  ? Command::kInspect
                   : chosen.front() == pull_     ? Command::kPull
                   : chosen.front() == list_     ? Command::kList
                   : chosen.front() == remove_   ? Command::kRemove
                   : chosen.front() == key_      ? Command::kKey
                                                 : Command::kBuildDatastore;
    take_options(problems);
  }

  void take_options(Problems& problems) {
    GenerateOptions& generate = out_.generate;
    convert("--max-tokens", max_tokens_, 1, 16777216, generate.max_tokens, problems);
    convert("--temperature", temperature_, 0, 2, generate.temperature, problems);
    convert("--top-p", top_p_, 1e-6f, 1, generate.top_p, problems);
    convert("--min-p", min_p_, 0, 1, generate.min_p, problems);
    convert("--top-k", top_k_, -1, 16777216, generate.top_k, problems);
    convert("--seed", seed_, 0, 18446744073709551615u, generate.seed, problems);
    if (out_.command == Command::kKey) take_key_options(problems);
    if (!out_.inspect.url.empty() && out_.flags.contains("model")) {
      problems.push_back("--url shows a running server: leave MODEL out");
    }
  }

  static std::string unknown_command(const std::string& word) {
    if (field_named(word) != nullptr) {
      return fmt::format("a command is required before {}: {}", log_safe(word), kCommandsText);
    }
    if (word.starts_with('-')) return unknown_text("flag", word, "--") + " (flags come after the command)";
    constexpr std::string_view kCommands[] = {"serve", "generate", "bench", "models",          "inspect",
                                              "pull",  "list",     "rm",    "build-datastore", "key"};
    const std::string suggestion = nearest(word, kCommands);
    return fmt::format(
        "unknown command {}: {}", log_safe(word),
        suggestion.empty() ? fmt::format("expected {}", kCommandsText) : fmt::format("did you mean {}?", suggestion));
  }

  CLI::App app_{"Serves large language models over the OpenAI and Anthropic APIs.", "quire"};
  CLI::App* serve_ = app_.add_subcommand("serve", "Start the API server");
  CLI::App* generate_ = app_.add_subcommand("generate", "Generate text from a prompt");
  CLI::App* bench_ = app_.add_subcommand(
      "bench", "Measure steps, kernels, the engine or servers, and compare with what this machine can do");
  CLI::App* models_ = app_.add_subcommand("models", "List the families of models that quire serves");
  CLI::App* inspect_ =
      app_.add_subcommand("inspect", "Show the contents of a model directory, or the KV cache of a running server");

  CLI::App* pull_ = app_.add_subcommand("pull", "Download a model from the Hugging Face hub, or its newest revision");
  CLI::App* list_ = app_.add_subcommand("list", "List the downloaded models, and whether they can be served");
  CLI::App* remove_ = app_.add_subcommand("rm", "Remove one revision of a downloaded model");
  CLI::App* build_datastore_ = app_.add_subcommand(
      "build-datastore", "Write the datastore file of retrieval-based speculation (rest) from texts");

  CLI::App* key_ = app_.add_subcommand("key", "Create an API key and its line for --api-key-file");

  CommandLine out_;
  Typed typed_;
  std::string key_role_, key_running_, key_queued_, key_tokens_, key_weight_;
  bool key_admin_ = false;
  std::string max_tokens_, temperature_, top_p_, min_p_, top_k_, seed_;
  bool print_flags_ = false;
  bool print_api_ = false;
  bool print_models_ = false;
  bool print_formats_ = false;
  bool print_vllm_flags_ = false;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems) {
  return Parser().parse(args, problems);
}

}  // namespace quire::app
