// The committed next-token distributions of the dequantised model, and how far other logits are
// from them. Knows files and numbers only: also compiled into the programs that measure other
// engines, so that one definition serves all. One thread.
//
// Divergence of a row: KL(P || Q) in nats, where P is the reference and Q the softmax of the given
// logits, both over the same keep + 1 outcomes: the `keep` likeliest tokens of the reference, and
// all other tokens together. Merging outcomes can only lower a divergence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quire {

struct QualityWindow {
  std::string name;
  double perplexity = 0;     // the reference's
  std::vector<int32_t> ids;  // row i predicts ids[i + 1]: one row less than ids
  size_t first_row = 0;      // of reference.u16
};

// Sums over rows.
struct QualitySum {
  double kl = 0, nll = 0;
  int64_t rows = 0;

  double MeanKl() const;
  double Perplexity() const;
  void Add(const QualitySum& other);
};

class QualityReference {
 public:
  // Aborts with a message if the files in `folder` are not a reference.
  explicit QualityReference(const std::string& folder);

  const std::vector<QualityWindow>& windows() const { return windows_; }
  const std::string& sha256() const { return sha256_; }  // of the model file
  double Perplexity() const;                             // the reference's, over all windows

  // Adds row `row` of the window: `logits` of the whole vocabulary, after ids[0..row].
  void AddRow(const QualityWindow& window, size_t row, std::span<const float> logits,
              QualitySum& sum) const;

 private:
  std::vector<QualityWindow> windows_;
  std::string sha256_;
  size_t keep_ = 0;
  double units_ = 1;            // of a logarithm
  std::vector<uint16_t> rows_;  // [rows][keep ids, keep + 1 logarithms]
};

// One line per window and one for all: divergence, perplexity, and the model's perplexity.
std::string QualityTable(const QualityReference& reference, const std::vector<QualitySum>& sums);

}  // namespace quire
