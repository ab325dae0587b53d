#include "api/completions/render_completion.h"

#include <utility>

#include "api/completions/completion_formatter.h"
#include "api/generation/render.h"
#include "api/wire/errors.h"

namespace quire::api {

http::Response render_completion(const Services& services, const std::string& body, Allowance& allowance) {
  CompletionFormatter formatter(services);
  if (const Result<Done> read = formatter.read(body); !read) return error_response(read.error());
  Result<std::vector<std::vector<TokenId>>> prompts = formatter.prompts(allowance);
  if (!prompts) return error_response(prompts.error());
  const auto sequences = sequences_to_render(formatter.request(), std::move(*prompts), services);
  if (!sequences) return error_response(sequences.error());

  std::string reported;
  JsonWriter json(reported);
  json.begin_array();
  for (const flow::Request& sequence : *sequences) {
    json.begin_object();
    write_rendered(json, "cmpl-", formatter.request(), sequence, services);
    json.end_object();
  }
  json.end_array();
  return rendered_response(formatter.request(), std::move(reported));
}

}  // namespace quire::api
