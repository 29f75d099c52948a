#include "runtime/loader/file_digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "runtime/base/status_macros.h"

namespace quire {

FileDigest::FileDigest(const ModelFile& file)
    : thread_([this, &file] { result_ = Compute(file); }) {}

FileDigest::~FileDigest() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::string> FileDigest::Take() {
  thread_.join();
  return std::move(result_);
}

absl::StatusOr<std::string> FileDigest::Compute(const ModelFile& file) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("SHA-256 is not available");
  }
  std::vector<std::byte> buffer(512 << 10);
  for (uint64_t offset = 0; offset < file.size() && !stop_;) {
    const std::span<std::byte> part(buffer.data(),
                                    std::min<uint64_t>(buffer.size(), file.size() - offset));
    RETURN_IF_ERROR(file.ReadAt(offset, part));
    if (EVP_DigestUpdate(context.get(), part.data(), part.size()) != 1)
      return absl::InternalError("SHA-256 failed");
    offset += part.size();
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1)
    return absl::InternalError("SHA-256 failed");
  return absl::BytesToHexString(std::string(digest.begin(), digest.begin() + size));
}

}  // namespace quire
