// The operations of /openapi.json and the schemas of their request bodies.
// Owner   constant tables.
// Thread  any.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/fields/field.h"
#include "api/wire/headers.h"

namespace quire::api {

// A request body that a table of fields describes.
struct Body {
  std::string_view name;  // in #/components/schemas
  Endpoint endpoint;
  std::span<const Field> (*own)();
  std::array<std::string_view, 2> required = {};  // required fields, two at most
};

struct Operation {
  std::string_view path;  // {name} is a path parameter
  std::string_view method;
  std::string_view id;  // operationId: names of generated functions, so it does not change
  std::string_view tag;
  std::string_view summary;
  std::string_view body = {};         // schema of the request body; empty: none
  std::string_view request = {};      // members of an example of it, without `model`
  std::string_view answer = {};       // type of a 200's body; empty: there is none
  std::string_view events = {};       // type of the data of a stream's events; empty: no streams
  std::string_view last_event = {};   // data of a stream's last event, if it is not of that type
  std::string_view error = "Error";   // type of an error's body
  std::string_view unavailable = {};  // of a probe: type of a 503's body
  std::string_view media = "application/json";
  std::uint8_t paths = http::kEveryPath;  // bits of http::Paths: select its headers
  bool names = false;                     // it names something that may be unknown: 404
  bool body_may_be_absent = false;
};

struct Tag {
  std::string_view name;
  std::string_view help;
};

std::span<const Body> bodies();
std::span<const Operation> operations();  // those of one path follow each other
std::span<const Tag> tags();

}  // namespace quire::api
