// Names cache domains: whatever besides tokens decides which cached prefix a request may use. Two
// requests share a domain exactly if tenant, salt and KV policy are equal; the name is a keyed hash
// (HMAC-SHA-256, 128 bits of it, a key of this process), so that no choice of salt finds a
// collision. Immutable; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "scheduler/request.h"

namespace quire {

class CacheDomains {
 public:
  using Key = std::array<unsigned char, 32>;
  CacheDomains();  // draws a key
  explicit CacheDomains(const Key& key) : key_(key) {}

  // The tenant by name, not by index: tenants that share an index share no cache.
  CacheDomain Of(std::string_view tenant, std::string_view salt, const KvPolicy& kv) const;

 private:
  Key key_;
};

}  // namespace quire
