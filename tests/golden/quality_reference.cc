#include "tests/golden/quality_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"

namespace quire {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.empty()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::abort();
  }
  return bytes;
}

// ln of the sum of exp over all logits.
double LogSumExp(std::span<const float> logits) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  return max + std::log(sum);
}

}  // namespace

double QualitySum::MeanKl() const { return kl / static_cast<double>(rows); }

double QualitySum::Perplexity() const { return std::exp(nll / static_cast<double>(rows)); }

void QualitySum::Add(const QualitySum& other) {
  kl += other.kl;
  nll += other.nll;
  rows += other.rows;
}

QualityReference::QualityReference(const std::string& folder) {
  const nlohmann::json json = nlohmann::json::parse(ReadAll(folder + "/reference.json"));
  sha256_ = json["sha256"].get<std::string>();
  keep_ = json["keep"].get<size_t>();
  units_ = json["units"].get<double>();
  size_t rows = 0;
  for (const nlohmann::json& w : json["windows"]) {
    windows_.push_back({.name = w["name"].get<std::string>(),
                        .perplexity = w["perplexity"].get<double>(),
                        .ids = w["ids"].get<std::vector<int32_t>>(),
                        .first_row = rows});
    rows += windows_.back().ids.size() - 1;
  }
  const std::string bytes = ReadAll(folder + "/reference.u16");
  rows_.resize(bytes.size() / sizeof(uint16_t));
  std::memcpy(rows_.data(), bytes.data(), rows_.size() * sizeof(uint16_t));
  if (rows_.size() != rows * (2 * keep_ + 1)) {
    std::fprintf(stderr, "%s: reference.u16 is not of reference.json\n", folder.c_str());
    std::abort();
  }
}

void QualityReference::AddRow(const QualityWindow& window, size_t row,
                              std::span<const float> logits, QualitySum& sum) const {
  const size_t size = 2 * keep_ + 1;
  const std::span stored = std::span(rows_).subspan((window.first_row + row) * size, size);
  const auto ids = stored.first(keep_), logs = stored.subspan(keep_);
  const double normaliser = LogSumExp(logits);
  double total = 0;  // of the stored probabilities, which rounding left beside 1
  for (const uint16_t coded : logs) total += std::exp(-coded / units_);
  const double log_total = std::log(total);
  double kl = 0, left = 1;  // left: Q of the tokens not yet seen
  for (size_t i = 0; i < keep_; ++i) {
    const double log_p = -logs[i] / units_ - log_total, log_q = logits[ids[i]] - normaliser;
    kl += std::exp(log_p) * (log_p - log_q);
    left -= std::exp(log_q);
  }
  // Tokens that are kept may take all but what a double can tell from 1.
  const double log_p = -logs[keep_] / units_ - log_total, log_q = std::log(std::max(left, 1e-12));
  kl += std::exp(log_p) * (log_p - log_q);
  sum.kl += kl;
  sum.nll += normaliser - logits[static_cast<size_t>(window.ids[row + 1])];
  ++sum.rows;
}

double QualityReference::Perplexity() const {
  double nll = 0, rows = 0;
  for (const QualityWindow& w : windows_) {
    const auto count = static_cast<double>(w.ids.size() - 1);
    nll += std::log(w.perplexity) * count;
    rows += count;
  }
  return std::exp(nll / rows);
}

std::string QualityTable(const QualityReference& reference, const std::vector<QualitySum>& sums) {
  std::string out;
  const auto add = [&out](const std::string& name, const QualitySum& sum, double perplexity) {
    char line[160];
    std::snprintf(line, sizeof(line), "%-18s KL %.6f  perplexity %9.5f  the model's %9.5f\n",
                  name.c_str(), sum.MeanKl(), sum.Perplexity(), perplexity);
    out += line;
  };
  QualitySum all;
  for (size_t i = 0; i < sums.size(); ++i) {
    add(reference.windows()[i].name, sums[i], reference.windows()[i].perplexity);
    all.Add(sums[i]);
  }
  add("all", all, reference.Perplexity());
  return out;
}

}  // namespace quire
