#include "api/openai/completions/render.h"

#include <utility>

#include "api/openai/completions/completion_form.h"
#include "api/openai/errors.h"
#include "api/openai/generation/render.h"

namespace quire::api::openai {

http::Response render_completion(const Services& services, const std::string& body, Allowance& allowance) {
  CompletionForm form(services);
  if (const Result<Done> read = form.read(body); !read) return error_response(read.error());
  Result<std::vector<std::vector<TokenId>>> prompts = form.prompts(allowance);
  if (!prompts) return error_response(prompts.error());
  const auto sequences = sequences_to_tell(form.request(), std::move(*prompts), services);
  if (!sequences) return error_response(sequences.error());

  std::string told;
  JsonWriter json(told);
  json.begin_array();
  for (const flow::Request& sequence : *sequences) {
    json.begin_object();
    write_rendered(json, "cmpl-", form.request(), sequence, services);
    json.end_object();
  }
  json.end_array();
  return rendered_response(form.request(), std::move(told));
}

}  // namespace quire::api::openai
