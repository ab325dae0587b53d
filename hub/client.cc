#include "hub/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/base/json.h"
#include "core/base/log.h"

namespace quire::hub {
namespace {

constexpr std::uint64_t kMaxAnswerBytes = 64u << 20;
constexpr std::size_t kMaxEntries = 100'000;                 // files and directories
constexpr std::size_t kLeastEntriesOfPage = 100;             // that a page counts as: pages end, too
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;  // of a repository
constexpr std::size_t kMaxJsonDepth = 32;
constexpr const char* kTokens = "https://huggingface.co/settings/tokens";

// Percent-encoded for a path; `kept`: what stays as it is besides letters, digits and - . _ ~
std::string quoted(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos || kept.find(c) != kept.npos;
    if (is_plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Failure strange(const std::string& endpoint, const std::string& what) {
  return {fmt::format("{} did not answer as a hub does: {}", log_safe(endpoint), what)};
}

const json::Value* member(const json::Value& value, std::string_view name) {
  const json::Object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string text_of(const json::Value* value) {
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::uint64_t> size_of(const json::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0) return static_cast<std::uint64_t>(value->get_int64());
  return std::nullopt;
}

// `Link: <URL>; rel="next"`
std::string next_page(const std::string& link) {
  std::size_t begin = 0;
  while ((begin = link.find('<', begin)) != link.npos) {
    const std::size_t end = link.find('>', begin);
    if (end == link.npos) return {};
    const std::size_t following = link.find('<', end);
    if (link.substr(end, following == link.npos ? following : following - end).find("rel=\"next\"") != link.npos) {
      return link.substr(begin + 1, end - begin - 1);
    }
    begin = end;
  }
  return {};
}

// An entry of a page of the tree, if it is a file that may be written; a text if it is broken.
std::variant<std::optional<RepoFile>, std::string> file_of(const json::Value& entry) {
  if (text_of(member(entry, "type")) != "file") return std::nullopt;
  RepoFile file;
  file.path = text_of(member(entry, "path"));
  if (!is_safe_path(file.path)) return std::nullopt;
  const json::Value* lfs = member(entry, "lfs");
  const bool has_lfs = lfs != nullptr && lfs->is_object();
  const json::Value& source = has_lfs ? *lfs : entry;
  const std::optional<std::uint64_t> size = size_of(member(source, "size"));
  file.blob = text_of(member(source, "oid"));
  if (file.blob.starts_with("sha256:")) file.blob.erase(0, 7);
  if (!size || !is_blob(file.blob)) return fmt::format("'{}' has no size or hash", log_safe(file.path));
  file.size = *size;
  return std::optional(std::move(file));
}

Duration wait_of(const Answer& answer) {
  unsigned seconds = 0;
  std::string text = answer.field("retry-after");
  if (text.empty()) {  // ratelimit: "api";r=0;t=55
    const std::string limit = answer.field("ratelimit");
    const std::size_t mark = limit.find("t=");
    if (mark != limit.npos) text = limit.substr(mark + 2);
  }
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::chrono::seconds(std::min(seconds, 3600u));
}

}  // namespace

const RepoFile* Listing::find(std::string_view path) const {
  const auto found = std::ranges::lower_bound(files, path, {}, &RepoFile::path);
  return found == files.end() || found->path != path ? nullptr : &*found;
}

Retries::Retries(const Settings& settings, std::stop_token stop, int max_attempts)
    : settings_(settings), stop_(std::move(stop)), max_attempts_(max_attempts) {}

bool Retries::again(const Failure& failure) {
  if (!failure.may_pass || ++failures_ >= max_attempts_) return false;
  const Duration grown = settings_.first_delay * (1 << std::min(failures_ - 1, 16));
  const Duration delay = std::max(failure.wait, std::min(grown, settings_.longest_delay));
  if (delay >= std::chrono::seconds(5)) {
    log_info("hub_retry", "in {} s: {}", std::chrono::duration_cast<std::chrono::seconds>(delay).count(),
             failure.message);
  }
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop_, delay, [] { return false; });
  return !stop_.stop_requested();
}

Client::Client(const Settings& settings, std::stop_token stop)
    : settings_(settings), stop_(std::move(stop)), transfer_(settings, stop_) {}

Got<Answer> Client::get(const std::string& url, const ModelName& name, int max_attempts) {
  Retries retries(settings_, stop_, max_attempts);
  while (true) {
    Got<Answer> got = transfer_.get(url, kMaxAnswerBytes);
    if (const auto* answer = std::get_if<Answer>(&got)) {
      if (answer->status == 200) return got;
      got = refusal(*answer, name);
    }
    if (!retries.again(std::get<Failure>(got))) return got;
  }
}

Got<Listing> Client::list(const ModelName& name, int max_attempts) {
  const std::string api = settings_.endpoint + "/api/models/" + quoted(name.repo, "/");
  Got<Answer> got = get(api + "/revision/" + quoted(name.revision, ""), name, max_attempts);
  if (const auto* failure = std::get_if<Failure>(&got)) return *failure;
  const Result<json::Value> about = json::parse(std::get<Answer>(got).body, kMaxJsonDepth);
  Listing listing;
  listing.commit = about ? text_of(member(*about, "sha")) : "";
  if (!is_commit(listing.commit)) return strange(settings_.endpoint, "its answer for a revision names no commit");
  if (is_commit(name.revision) && name.revision != listing.commit) {
    return strange(settings_.endpoint, "it names another commit than the one that was asked for");
  }

  std::string page = api + "/tree/" + listing.commit + "?recursive=true&expand=false";
  std::size_t num_entries = 0;
  std::uint64_t bytes = 0;
  while (!page.empty()) {
    got = get(page, name, max_attempts);
    if (const auto* failure = std::get_if<Failure>(&got)) return *failure;
    const Answer& answer = std::get<Answer>(got);
    const Result<json::Value> tree = json::parse(answer.body, kMaxJsonDepth);
    if (!tree || !tree->is_array()) return strange(settings_.endpoint, "its list of files is no JSON array");
    for (const json::Value& entry : tree->get_array()) {
      auto file = file_of(entry);
      if (const auto* fault = std::get_if<std::string>(&file)) return strange(settings_.endpoint, *fault);
      auto& good = std::get<0>(file);
      if (!good) continue;
      bytes += std::min(good->size, kMaxBytes + 1);
      listing.files.push_back(std::move(*good));
    }
    num_entries += std::max<std::size_t>(tree->get_array().size(), kLeastEntriesOfPage);
    if (num_entries > kMaxEntries || bytes > kMaxBytes) {
      return Failure{fmt::format("{} has more than {} files, or files of more than {} TiB", name.repo, kMaxEntries,
                                 kMaxBytes >> 40)};
    }
    const bool is_empty = tree->get_array().empty();
    page = next_page(answer.field("link"));
    if (page.empty()) break;
    if (is_empty || origin_of(page) != origin_of(settings_.endpoint)) {
      return strange(settings_.endpoint,
                     "the next page of its list is elsewhere, at " + log_safe(origin_of(page).text()));
    }
  }
  std::ranges::sort(listing.files, {}, &RepoFile::path);
  const auto twice = std::ranges::adjacent_find(listing.files, {}, &RepoFile::path);
  if (twice != listing.files.end()) {
    return strange(settings_.endpoint, fmt::format("it lists '{}' twice", log_safe(twice->path)));
  }
  return listing;
}

Got<Answer> Client::fetch(const ModelName& name, const std::string& commit, const RepoFile& file, std::uint64_t offset,
                          Sink& sink) {
  const std::string url =
      settings_.endpoint + "/" + quoted(name.repo, "/") + "/resolve/" + commit + "/" + quoted(file.path, "/");
  Got<Answer> got = transfer_.get_file(url, offset, sink);
  if (const auto* answer = std::get_if<Answer>(&got)) {
    if (answer->status != 200 && answer->status != 206) {
      Failure failure = refusal(*answer, name);
      failure.message = log_safe(file.path) + ": " + failure.message;
      // A signed address that expired, or a range that the server does not have: asked for anew.
      if (answer->status == 416 || (answer->status == 403 && answer->field("x-error-code").empty())) {
        failure.may_pass = true;
      }
      return failure;
    }
  }
  return got;
}

Failure Client::refusal(const Answer& answer, const ModelName& name) const {
  const std::string code = answer.field("x-error-code");
  const std::string said = log_safe(answer.field("x-error-message"));
  const std::string token = settings_.token.empty() ? "" : "the token of " + log_safe(settings_.token_source);
  const std::string hub_says = said.empty() ? "" : fmt::format(" (the hub says: {})", said);
  if (code == "GatedRepo") {
    return {token.empty()
                ? fmt::format("{} is gated: accept its terms at {}, then set HF_TOKEN to a token of your account ({})",
                              name.repo, page_of(name), kTokens)
                : fmt::format("{} is gated, and {} has no access to it: ask for access at {}{}", name.repo, token,
                              page_of(name), hub_says)};
  }
  if (code == "DisabledRepo") return {fmt::format("{} was disabled by the hub{}", name.repo, hub_says)};
  if (code == "RevisionNotFound") {
    return {fmt::format("{} has no revision '{}': {}/tree/main lists its branches and tags", name.repo,
                        log_safe(name.revision), page_of(name))};
  }
  if (code == "EntryNotFound") return {"there is no such file in the repository" + hub_says};
  if (code == "RepoNotFound" || answer.status == 401 || answer.status == 404) {
    return {token.empty()
                ? fmt::format("{} is not on {}, or it is private: check the name, or set HF_TOKEN to a token that may "
                              "read it ({}){}",
                              name.repo, settings_.endpoint, kTokens, hub_says)
                : fmt::format("{} is not on {}, or {} may not read it: check the name and the token ({}){}", name.repo,
                              settings_.endpoint, token, kTokens, hub_says)};
  }
  if (answer.status == 403) {
    return {fmt::format("{} may not be read{}{}", name.repo, token.empty() ? "" : " with " + token, hub_says)};
  }
  if (answer.status == 429) {
    return {fmt::format("{} takes no more requests for now (429); {}try again later", settings_.endpoint,
                        token.empty() ? "with a token in HF_TOKEN it takes more, or " : ""),
            true, false, wait_of(answer)};
  }
  if (answer.status >= 500 || answer.status == 408) {
    return {fmt::format("{} fails (HTTP {}): try again later{}", settings_.endpoint, answer.status, hub_says), true,
            false, wait_of(answer)};
  }
  return {fmt::format("{} answered HTTP {}{}", settings_.endpoint, answer.status, hub_says)};
}

}  // namespace quire::hub
