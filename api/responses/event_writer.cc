#include "api/responses/event_writer.h"

#include "api/wire/sse_writer.h"

namespace quire::api::responses {

using chat::AnswerItem;
using Kind = AnswerItem::Kind;

template <typename Write>
void EventWriter::event(std::string_view type, Write write) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("type").text(type).key("sequence_number").number(sequence_++);
  write(json);
  json.end_object();
  http::append_event(*events_, type, text);
}

// An event of an item: adds its id and index, and the index of its only part, which is 0; a call has no part.
template <typename Write>
void EventWriter::item_event(std::string_view type, const AnswerItem& item, Write write) {
  event(type, [&](JsonWriter& json) {
    json.key("item_id").text(ResponseObject::item_id(*facts_, item));
    json.key("output_index").number(std::uint64_t{item.index});
    if (item.kind != Kind::kCall) json.key("content_index").number(std::uint64_t{0});
    write(json);
  });
}

void EventWriter::response(std::string_view type, const Progress& progress) {
  event(type, [&](JsonWriter& json) { object_.append(json.key("response"), *facts_, progress); });
}

void EventWriter::begin(const AnswerItem& item) {
  event("response.output_item.added", [&](JsonWriter& json) {
    json.key("output_index").number(std::uint64_t{item.index});
    object_.append_item(json.key("item"), *facts_, item, "in_progress");
  });
  if (item.kind == Kind::kCall) return;
  item_event("response.content_part.added", item,
             [&](JsonWriter& json) { object_.append_part(json.key("part"), item, ""); });
}

void EventWriter::more(const AnswerItem& item, std::string_view text) {
  const char* type = item.kind == Kind::kCall      ? "response.function_call_arguments.delta"
                     : item.kind == Kind::kContent ? "response.output_text.delta"
                                                   : "response.reasoning_text.delta";
  item_event(type, item, [&](JsonWriter& json) {
    json.key("delta").text(text);
    if (item.kind == Kind::kContent) object_.append_logprobs(json.key("logprobs"), tokens_.take(item.index, text));
  });
}

void EventWriter::end(const AnswerItem& item) {
  switch (item.kind) {
    case Kind::kReasoning:
      item_event("response.reasoning_text.done", item, [&](JsonWriter& json) { json.key("text").text(item.text); });
      break;
    case Kind::kContent:
      item_event("response.output_text.done", item, [&](JsonWriter& json) {
        object_.append_logprobs(json.key("text").text(item.text).key("logprobs"), tokens_.of(item.index));
      });
      break;
    case Kind::kCall:
      item_event("response.function_call_arguments.done", item,
                 [&](JsonWriter& json) { json.key("name").text(item.name).key("arguments").text(item.text); });
      break;
  }
  if (item.kind != Kind::kCall) {
    item_event("response.content_part.done", item,
               [&](JsonWriter& json) { object_.append_part(json.key("part"), item, item.text); });
  }
  event("response.output_item.done", [&](JsonWriter& json) {
    json.key("output_index").number(std::uint64_t{item.index});
    object_.append_item(json.key("item"), *facts_, item, end_status_);
  });
}

}  // namespace quire::api::responses
