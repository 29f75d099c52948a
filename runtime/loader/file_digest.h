// SHA-256 of a model file, computed on a thread of its own while the weights are packed. The owner
// calls Take once, or lets the destructor stop the thread; the file outlives the digest.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "runtime/loader/model_file.h"

namespace quire {

class FileDigest {
 public:
  explicit FileDigest(const ModelFile& file);
  ~FileDigest();
  FileDigest(const FileDigest&) = delete;
  FileDigest& operator=(const FileDigest&) = delete;

  // Waits for the end; 64 hex digits.
  absl::StatusOr<std::string> Take();

 private:
  absl::StatusOr<std::string> Compute(const ModelFile& file) const;

  std::atomic<bool> stop_ = false;
  absl::StatusOr<std::string> result_;
  std::thread thread_;
};

}  // namespace quire
