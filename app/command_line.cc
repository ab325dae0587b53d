#include "app/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "api/chat/chat_request.h"
#include "api/completions/completion_request.h"
#include "api/embeddings/embedding_request.h"
#include "api/fields/markdown.h"
#include "api/messages/messages_request.h"
#include "api/responses/responses_request.h"
#include "app/cli/command_texts.h"
#include "app/cli/completion.h"
#include "app/cli/help_pages.h"
#include "app/cli/key_flags.h"
#include "app/cli/number_option.h"
#include "app/cli/other_commands.h"
#include "app/config/command_flags.h"
#include "app/config/foreign_flags.h"
#include "app/config/units.h"
#include "app/config/version.h"
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

// "serve, chat, … or completion"
std::string commands_text() {
  std::string out;
  const std::span<const CommandText> all = command_texts();
  for (const CommandText& one : all) {
    out += fmt::format("{}{}", out.empty() ? "" : &one == &all.back() ? " or " : ", ", one.name);
  }
  return out;
}

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

class Parser {
 public:
  explicit Parser(std::size_t columns) : columns_(columns) {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", version_text(), "print the version");
    app_.allow_extras();
    app_.set_help_flag();  // parse() looks for it
    for (CLI::App* command : app_.get_subcommands([](CLI::App*) { return true; })) {
      command->allow_extras();
      command->set_help_flag();
    }
    add_fields(*serve_, kServe, typed_);
    add_fields(*chat_, kServe, typed_);
    add_fields(*generate_, kGenerate, typed_);
    add_fields(*inspect_, kInspect, typed_);
    add_fields(*ps_, kPs, typed_);
    add_fields(*stop_, kStop, typed_);
    add_fields(*doctor_, kDoctor, typed_);
    add_fields(*pull_, kPull, typed_);
    add_fields(*list_, kList, typed_);
    add_fields(*remove_, kRemove, typed_);
    add_fields(*quantize_, kQuantize, typed_);
    add_fields(*build_datastore_, kBuildDatastore, typed_);
    serve_->add_flag("--plan", out_.serve.plan,
                     "print the memory, blocks and sequences of a server, and exit without starting one");
    serve_->add_flag("--print-flags-markdown", print_flags_, "")->group("");
    serve_->add_flag("--print-vllm-flags-markdown", print_vllm_flags_, "")->group("");
    serve_->add_flag("--print-llama-flags-markdown", print_llama_flags_, "")->group("");
    serve_->add_flag("--print-api-markdown", print_api_, "")->group("");
    models_->add_flag("--print-markdown", print_models_, "")->group("");
    models_->add_flag("--print-formats-markdown", print_formats_, "")->group("");
    generate_->add_option("--prompt", out_.generate.prompt, "prompt; -: standard input")->type_name("text");
    generate_->add_option("--prompt-file", out_.generate.prompt_file, "file with the prompt")->type_name("file");
    generate_->add_option("--system", out_.generate.system, "system message of a model with a chat template")
        ->type_name("text");
    generate_->add_flag("--raw", out_.generate.raw, "continue the prompt as it is, without the model's chat template");
    generate_
        ->add_option("--json-schema", out_.generate.json_schema, "JSON schema of the answer: a file, or the schema")
        ->type_name("text");
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
    chat_->add_option("--url", out_.chat.url, "URL of a running server; without one, MODEL gets a server of its own")
        ->type_name("text");
    chat_->add_option("--system", out_.chat.system, "system message")->type_name("text");
    chat_
        ->add_option("--set", out_.chat.set,
                     "NAME=VALUE, a field of the requests, such as max_tokens=64 or temperature=0.2; repeatable")
        ->type_name("text")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    inspect_
        ->add_option("--url", out_.inspect.url,
                     "URL of a running server, http or https, to show its cache instead of a model")
        ->type_name("text");
    inspect_
        ->add_option(
            "--cacert", out_.inspect.cacert,
            "with an https URL: file of the certificates (PEM) that sign the server's, instead of the system's")
        ->type_name("file");
    inspect_->add_flag("--tensors", out_.inspect.tensors, "list the tensors, too");
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
    quantize_
        ->add_option("--to", out_.quantize.to,
                     "the form: w8a8, fp8 or w4a16 of a directory, q8_0 or q4_0 of a GGUF file")
        ->type_name("w8a8|fp8|w4a16|q8_0|q4_0")
        ->check(CLI::IsMember({"w8a8", "fp8", "w4a16", "q8_0", "q4_0"}))
        ->required();
    quantize_->add_option("--out", out_.quantize.out, "directory, or GGUF file, to write")
        ->type_name("text")
        ->required();
    key_flags_.add(*key_, out_.key);
    add_operate_flags();
    inspect_->add_flag("--json", out_.inspect.json, "print JSON");
    list_->add_flag("--json", out_.list.json, "print JSON");
    list_->add_flag("--names", out_.list.names, "print the names only, without reading the models");
    completion_->add_option("SHELL", shell_, "bash, zsh or fish");
    remove_->add_flag("-y,--yes", out_.remove.yes, "do not ask");
  }

  CommandLine parse(std::vector<std::string> args, Problems& problems) {
    if (!args.empty() && args.front() == "help") args = help_words(args);
    if (!args.empty() && args.front() == "bench") {  // quire-bench parses the rest
      out_.command = Command::kBench;
      out_.bench_args.assign(args.begin() + 1, args.end());
      return std::move(out_);
    }
    if (args == std::vector<std::string>{"version"}) args = {"--version"};
    if (const auto topic = help_asked(args)) return help(args, *topic, problems);
    if (!args.empty() && args.front() == "serve") {
      Translated translated = translate_foreign(std::span(args).subspan(1), problems);
      args = std::move(translated.args);
      args.insert(args.begin(), "serve");
      out_.notes = std::move(translated.notes);
    }
    args = with_empty_values(args);
    try {
      std::reverse(args.begin(), args.end());  // CLI11 reads them from the back
      app_.parse(args);
    } catch (const CLI::CallForVersion& version) {
      return print(std::string(version.what()) + "\n");
    } catch (const CLI::ParseError& error) {
      problems.push_back(error.what());
      return std::move(out_);
    }
    if (print_flags_) return print(flags_markdown());
    if (print_vllm_flags_) return print(vllm_flags_markdown());
    if (print_llama_flags_) return print(llama_flags_markdown());
    if (print_api_) return print(api_markdown());
    if (print_models_) return print(models_markdown());
    if (print_formats_) return print(formats_markdown());
    take_command(problems);
    return std::move(out_);
  }

 private:
  // "--flag=" as two words, "--flag" and "": CLI11 would take the next word for the value.
  static std::vector<std::string> with_empty_values(const std::vector<std::string>& args) {
    std::vector<std::string> out;
    for (const std::string& arg : args) {
      const bool is_empty = arg.starts_with("--") && arg.find('=') + 1 == arg.size();
      out.push_back(is_empty ? arg.substr(0, arg.size() - 1) : arg);
      if (is_empty) out.emplace_back();
    }
    return out;
  }

  // "help serve" → "serve --help"; "help serve memory" → "serve --help=memory"
  static std::vector<std::string> help_words(std::vector<std::string> args) {
    args.erase(args.begin());
    if (args.size() == 2 && !args.back().starts_with('-')) {
      args.back().insert(0, "--help=");
    } else {
      args.emplace_back("--help");
    }
    return args;
  }

  // The topic of a --help among the words, wherever it is; words after "--" are none.
  static std::optional<std::string> help_asked(const std::vector<std::string>& args) {
    for (const std::string& word : args) {
      if (word == "--") break;
      if (const char* topic = help_topic(word)) return topic;
    }
    return std::nullopt;
  }

  CommandLine help(const std::vector<std::string>& args, const std::string& topic, Problems& problems) {
    const bool named_first = !args.front().starts_with('-');
    const bool named_second = !named_first && args.size() > 1 && !args[1].starts_with('-');  // "--help serve"
    if (!named_first && !named_second) return print(root_help(app_, columns_));
    const std::string& name = named_first ? args[0] : args[1];
    if (name == "version") return print(root_help(app_, columns_));
    if (name == "bench") {
      out_.command = Command::kBench;
      out_.bench_args = {topic.empty() ? "--help" : "--help=" + topic};
      return std::move(out_);
    }
    const auto found = app_.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
    if (found.empty()) {
      problems.push_back(unknown_command(name));
      return std::move(out_);
    }
    Result<std::string> page = command_help(*found.front(), topic, columns_);
    if (page) return print(std::move(*page));
    problems.push_back(page.error().message);
    return std::move(out_);
  }

  CommandLine print(std::string text) {
    out_.command = Command::kPrint;
    out_.text = std::move(text);
    return std::move(out_);
  }

  void add_operate_flags() {
    for (CLI::App* command : {ps_, stop_}) {
      CLI::Option* id = command->add_option("ID", out_.operate.id, "id of a request, or of its answer")->type_name("");
      if (command == stop_) id->required();
      command->add_option("--url", out_.operate.url, "URL of the server, or of its admin port if it has one")
          ->type_name("text")
          ->capture_default_str();
      command
          ->add_option("--cacert", out_.operate.cacert,
                       "with an https URL: file of the certificates (PEM) that sign the server's, instead of the "
                       "system's")
          ->type_name("file");
    }
    ps_->add_flag("--json", out_.operate.json, "print JSON");
    doctor_->add_flag("--json", out_.doctor.json, "print JSON");
  }

  void take_command(Problems& problems) {
    const auto chosen = app_.get_subcommands();
    // `bench` is a command only as the first word, and parse() has handled that.
    const bool none = chosen.empty() || chosen.front() == bench_;
    const std::vector<std::string> unknown = none ? app_.remaining() : chosen.front()->remaining();
    if (none) {
      problems.push_back(unknown.empty() ? "a command is required: " + commands_text() + " (quire --help)"
                                         : unknown_command(unknown.front()));
      return;
    }
    if (chosen.front() == generate_) take_prompt(problems);
    if (chosen.front() == completion_) return take_shell(problems);
    out_.flags = take_settings(*chosen.front(), typed_, problems);
    const auto is_flag = [](const std::string& word) { return word.starts_with('-'); };
    const bool takes_words = chosen.front() != key_ && chosen.front() != models_ && chosen.front() != list_ &&
                             chosen.front() != ps_ && chosen.front() != stop_;
    if (!takes_words && !unknown.empty() && std::ranges::none_of(unknown, is_flag)) {
      problems.push_back(fmt::format("unexpected word {}: {} takes no more words", log_safe(unknown.front()),
                                     chosen.front()->get_name()));
    }
    if (chosen.front() == models_) {
      out_.command = Command::kPrint;
      out_.text = models_text();
      return;
    }
    out_.command = chosen.front() == serve_      ? Command::kServe
                   : chosen.front() == chat_     ? Command::kChat
                   : chosen.front() == generate_ ? Command::kGenerate
                   : chosen.front() == inspect_  ? Command::kInspect
                   : chosen.front() == ps_       ? Command::kPs
                   : chosen.front() == stop_     ? Command::kStop
                   : chosen.front() == doctor_   ? Command::kDoctor
                   : chosen.front() == pull_     ? Command::kPull
                   : chosen.front() == list_     ? Command::kList
                   : chosen.front() == remove_   ? Command::kRemove
                   : chosen.front() == quantize_ ? Command::kQuantize
                   : chosen.front() == key_      ? Command::kKey
                                                 : Command::kBuildDatastore;
    take_options(problems);
  }

  void take_shell(Problems& problems) {
    out_.text = completion_script(shell_, app_);
    take_settings(*completion_, typed_, problems);  // unknown flags
    for (const std::string& word : completion_->remaining()) {
      if (!word.starts_with('-'))
        problems.push_back(fmt::format("unexpected word {}: one shell is expected", log_safe(word)));
    }
    if (out_.text.empty()) {
      const std::string suggestion = nearest(shell_, kShells);
      problems.push_back(
          fmt::format("completion {}: {}", log_safe(shell_),
                      suggestion.empty() ? "expected bash, zsh or fish" : fmt::format("did you mean {}?", suggestion)));
    }
  }

  // Of generate: a second word is the prompt.
  void take_prompt(Problems& problems) {
    GenerateOptions& generate = out_.generate;
    std::vector<std::string>& words = typed_["model"];
    std::vector<std::string> given;
    if (!generate.prompt.empty()) given.emplace_back("--prompt");
    if (!generate.prompt_file.empty()) given.emplace_back("--prompt-file");
    if (words.size() == 2) {
      given.push_back(words.back());
      if (given.size() == 1) generate.prompt = words.back();
      words.pop_back();
    }
    if (given.size() > 1) {
      problems.push_back(fmt::format("{} and {}: one prompt is expected", given[0], log_safe(given[1])));
    }
    if (generate.raw && !generate.system.empty()) {
      problems.push_back("--system needs the chat template that --raw leaves out");
    }
  }

  void take_options(Problems& problems) {
    GenerateOptions& generate = out_.generate;
    convert("--max-tokens", max_tokens_, 1, 16777216, generate.max_tokens, problems);
    convert("--temperature", temperature_, 0, 2, generate.temperature, problems);
    convert("--top-p", top_p_, 1e-6f, 1, generate.top_p, problems);
    convert("--min-p", min_p_, 0, 1, generate.min_p, problems);
    convert("--top-k", top_k_, -1, 16777216, generate.top_k, problems);
    convert("--seed", seed_, 0, 18446744073709551615u, generate.seed, problems);
    if (out_.command == Command::kKey) key_flags_.take(out_.key, problems);
    out_.doctor.has_model = out_.flags.contains("model");
    if (!out_.operate.cacert.empty() && !out_.operate.url.starts_with("https://")) {
      problems.push_back("--cacert is for an https:// URL of a running server: --url");
    }
    if (!out_.inspect.url.empty() && out_.flags.contains("model")) {
      problems.push_back("--url shows a running server: leave MODEL out");
    }
    if (!out_.inspect.cacert.empty() && !out_.inspect.url.starts_with("https://")) {
      problems.push_back("--cacert is for an https:// URL of a running server: --url");
    }
    if (!out_.inspect.url.empty() && out_.inspect.tensors) {
      problems.push_back("--url shows a running server: leave --tensors out");
    }
  }

  std::string unknown_command(const std::string& word) const {
    if (field_named(word) != nullptr) {
      return fmt::format("a command is required before {}: {}", log_safe(word), commands_text());
    }
    if (word.starts_with('-')) return unknown_text("flag", word, "--") + " (flags come after the command)";
    if (const OtherCommand* other = find_other_command(word)) {
      return fmt::format("unknown command {}: {}", log_safe(word), other->hint);
    }
    std::vector<std::string> names = {"help", "version"};
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    const std::string suggestion = nearest_or_longer(word, std::vector<std::string_view>(names.begin(), names.end()));
    return fmt::format(
        "unknown command {}: {}", log_safe(word),
        suggestion.empty() ? fmt::format("expected {}", commands_text()) : fmt::format("did you mean {}?", suggestion));
  }

  CLI::App app_{"Serves large language models over the OpenAI and Anthropic APIs.", "quire"};
  CLI::App* serve_ = app_.add_subcommand("serve", "Start the API server");
  CLI::App* generate_ = app_.add_subcommand("generate", "Generate text from a prompt");
  CLI::App* bench_ = app_.add_subcommand(
      "bench", "Measure steps, kernels, the engine or servers, and compare with what this machine can do");
  CLI::App* chat_ = app_.add_subcommand("chat", "Talk to a model, or to a running server");
  CLI::App* models_ = app_.add_subcommand("models", "List the families of models that quire serves");
  CLI::App* inspect_ =
      app_.add_subcommand("inspect", "Show the contents of a model directory, or the KV cache of a running server");

  CLI::App* ps_ = app_.add_subcommand("ps", "Show the requests of a running server, or the timeline of one");
  CLI::App* stop_ = app_.add_subcommand("stop", "Stop a request of a running server");
  CLI::App* doctor_ =
      app_.add_subcommand("doctor", "Check this machine: what would be slow or fail here, and what to do");
  CLI::App* pull_ = app_.add_subcommand("pull", "Download a model from the Hugging Face hub, or its newest revision");
  CLI::App* list_ = app_.add_subcommand("list", "List the downloaded models, and whether they can be served");
  CLI::App* remove_ = app_.add_subcommand("rm", "Remove one revision of a downloaded model");
  CLI::App* quantize_ = app_.add_subcommand("quantize", "Write a model with its matrices in fewer bits");
  CLI::App* build_datastore_ = app_.add_subcommand(
      "build-datastore", "Write the datastore file of retrieval-based speculation (rest) from texts");

  CLI::App* key_ = app_.add_subcommand("key", "Create an API key and its line for --api-key-file");
  CLI::App* completion_ =
      app_.add_subcommand("completion", "Print the completion script of a shell: bash, zsh or fish");

  const std::size_t columns_;
  CommandLine out_;
  Typed typed_;
  std::string shell_;
  KeyFlags key_flags_;
  std::string max_tokens_, temperature_, top_p_, min_p_, top_k_, seed_;
  bool print_flags_ = false;
  bool print_api_ = false;
  bool print_models_ = false;
  bool print_formats_ = false;
  bool print_vllm_flags_ = false;
  bool print_llama_flags_ = false;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& args, Problems& problems, std::size_t columns) {
  return Parser(columns).parse(args, problems);
}

}  // namespace quire::app
