#include "api/fields/markdown.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "api/chat/chat_request.h"
#include "api/completions/completion_request.h"
#include "api/embeddings/embedding_request.h"
#include "api/messages/messages_request.h"
#include "api/responses/responses_request.h"
#include "tests/api/generation/fake_engine.h"

namespace quire::api::markdown_test {
namespace {

TEST(FieldsMarkdown, IsWhatTheDocumentSays) {
  const std::string document = test::source_text("docs/api.md");
  for (const std::string& table :
       {headers_markdown(), answer_headers_markdown(), fields_markdown(kCompletions, completion_fields()),
        fields_markdown(kChat, chat::chat_fields()), fields_markdown(kEmbeddings, embedding_fields()),
        fields_markdown(kResponses, responses::responses_fields()),
        fields_markdown(kMessages, messages::messages_fields())}) {
    EXPECT_NE(document.find(table), std::string::npos) << "print it with `quire serve --print-api-markdown`";
  }
}

TEST(FieldsMarkdown, HidesASharedFieldBehindAnOwnOne) {
  constexpr Field kOwn[] = {{"seed", kChat, Flag{&GenerationRequest::echo}, "false", "mine", ""}};
  const std::string table = fields_markdown(kChat, kOwn);
  EXPECT_NE(table.find("| `seed` | boolean |"), std::string::npos);
  EXPECT_EQ(table.find("| `seed` | integer |"), std::string::npos);
}

TEST(FieldsMarkdown, EveryFieldNamesATestThatMentionsIt) {
  for (const std::span<const Field> fields :
       {completion_fields(), chat::chat_fields(), embedding_fields(), responses::responses_fields(),
        messages::messages_fields(), shared_fields()}) {
    for (const Field& field : fields) {
      const std::string path = std::string("tests/") + field.test;
      const std::string text = test::source_text(path);
      // A table of fields is walked by tests that name none.
      const bool walked = path.ends_with("read_body_test.cc");
      EXPECT_TRUE(walked || text.find(field.name) != std::string::npos) << path << " does not speak of " << field.name;
    }
  }
}

}  // namespace
}  // namespace quire::api::markdown_test
