// Progress of loading on stderr: a bar on a terminal, else a line for each quarter. One thread.
#pragma once

#include <chrono>
#include <cstddef>

namespace quire {

class LoadProgress {
 public:
  LoadProgress();
  void Show(size_t done_bytes, size_t total_bytes);
  void Finish();  // leaves the line clean

 private:
  const bool bar_;
  int last_percent_ = 0;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace quire
