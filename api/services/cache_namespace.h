// Cache namespaces: requests share cached blocks only within one. Equal parts give equal namespaces, and it is
// infeasible to find different parts that do.
// Shape   the first 128 bits of SHA-256 over a tag and the four parts, each preceded by its length (64 bits, little
//         endian), so that different lists of parts are different bytes.
// Thread  any but the engine's.
// Source  FIPS 180-4; the layout is ours.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/ids.h"

namespace quire::api {

struct CacheNamespaceParts {
  std::string_view numeric_mode;  // or its fingerprint
  std::string_view adapter;       // empty: none
  std::string_view tenant;
  std::string_view salt;  // of the request; empty: none
};

CacheNamespace cache_namespace(const CacheNamespaceParts& parts);
// The namespace of a tenant's requests with this salt, for a loaded model by the fingerprint of its numeric mode. Both
// requests and pinned prefixes use it. An empty tenant is the default one, of servers without keys and of pinned
// prefixes.
CacheNamespace namespace_of_tenant(std::string_view fingerprint, std::string_view tenant, std::string_view salt);

// A random namespace for one prompt: only its sequences share blocks with each other.
CacheNamespace unique_cache_namespace();

}  // namespace quire::api
