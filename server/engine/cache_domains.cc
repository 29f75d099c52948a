#include "server/engine/cache_domains.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <string>

#include "absl/log/check.h"

namespace quire {
namespace {

void AppendNumber(uint64_t value, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

// Length first, so that no two lists of parts give the same bytes.
void AppendPart(std::string_view part, std::string* out) {
  AppendNumber(part.size(), out);
  out->append(part);
}

}  // namespace

CacheDomains::CacheDomains() {
  CHECK_EQ(RAND_bytes(key_.data(), static_cast<int>(key_.size())), 1) << "no random numbers";
}

CacheDomain CacheDomains::Of(std::string_view tenant, std::string_view salt,
                             const KvPolicy& kv) const {
  std::string text;
  AppendPart(tenant, &text);
  AppendPart(salt, &text);
  AppendNumber(static_cast<uint64_t>(kv.window_tokens), &text);
  AppendNumber(static_cast<uint64_t>(kv.window_tokens > 0 ? kv.sink_tokens : 0), &text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
             &size) != nullptr);
  CHECK_EQ(size, 32u);
  CacheDomain domain;
  std::memcpy(&domain.hi, digest.data(), sizeof(domain.hi));
  std::memcpy(&domain.lo, digest.data() + sizeof(domain.hi), sizeof(domain.lo));
  return domain;
}

}  // namespace quire
