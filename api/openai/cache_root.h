// Who shares cached blocks with whom, as a number: equal parts give equal roots, and nobody finds two that meet.
// Shape   the first 128 bits of SHA-256 over a tag and the four parts, each with its length (64 bits, little endian) in
//         front: no two different lists of parts are the same bytes.
// Thread  any; off the engine's.
// Source  FIPS 180-4; the layout is ours.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/ids.h"

namespace quire::api::openai {

struct CacheRootParts {
  std::string_view numeric_mode;  // or its fingerprint
  std::string_view adapter;       // empty: none
  std::string_view tenant;
  std::string_view salt;  // the request's; empty: none
};

CacheRoot cache_root(const CacheRootParts& parts);
// Of a tenant's requests with this salt, for the model as it was loaded: what requests and pinned prefixes meet under.
// Empty: the default tenant, of servers without keys, and of pinned prefixes.
CacheRoot root_of_tenant(std::string_view fingerprint, std::string_view tenant, std::string_view salt);

// One that nobody else has: the sequences of one prompt share with each other alone.
CacheRoot unique_cache_root();

}  // namespace quire::api::openai
