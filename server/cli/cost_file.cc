#include "server/cli/cost_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/read_file.h"
#include "runtime/base/status_macros.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "quire-step-cost";
constexpr int kVersionOfFile = 1;

Json PointJson(const CostPoint& point, const CostModel& model) {
  const BatchShape& s = point.shape;
  return {{"rows", s.rows},
          {"sequences", s.sequences},
          {"draws", s.draws},
          {"decode_kv", s.decode_kv},
          {"decode_kv_read", s.decode_kv_read},
          {"prefill_kv", s.prefill_kv},
          {"prefill_pairs", s.prefill_pairs},
          {"measured_us", std::round(point.seconds * 1e7) / 10},
          {"predicted_us", std::round(model.Seconds(s) * 1e7) / 10}};
}

// Reads one file; the first thing that is wrong with it stays.
class Reader {
 public:
  Reader(const std::string& path, const Json& json) : path_(path), json_(json) {}

  std::string Text(const char* key) {
    const Json* value = Find(key, "text");
    return value != nullptr && Check(value->is_string(), key, "text") ? value->get<std::string>()
                                                                      : "";
  }
  double Number(const char* key, double low, double high) {
    return NumberOf(Find(key, "a number"), key, low, high);
  }
  double Coefficient(std::string_view term) {
    const Json* all = Find("microseconds", "an object");
    if (all == nullptr || !Check(all->is_object(), "microseconds", "an object")) return 0;
    const std::string key(term);
    const auto it = all->find(key);
    return NumberOf(it == all->end() ? nullptr : &*it, absl::StrCat("microseconds.", key), 0, 1e12);
  }
  const absl::Status& status() const { return status_; }

 private:
  bool Check(bool good, std::string_view key, std::string_view wanted) {
    if (!good && status_.ok()) {
      status_ = absl::FailedPreconditionError(
          absl::StrCat(path_, ": ", View(key), ": wanted ", View(wanted)));
    }
    return good;
  }
  const Json* Find(const char* key, const char* wanted) {
    const auto it = json_.find(key);
    return Check(it != json_.end(), key, wanted) ? &*it : nullptr;
  }
  double NumberOf(const Json* value, std::string_view key, double low, double high) {
    const bool good = value != nullptr && value->is_number() && value->get<double>() >= low &&
                      value->get<double>() <= high;
    return Check(good, key, absl::StrCat("a number ", low, "..", high)) ? value->get<double>() : 0;
  }

  const std::string& path_;
  const Json& json_;
  absl::Status status_;
};

}  // namespace

std::string CostFileJson(const CostFile& file) {
  Json json = {{"kind", kKind},
               {"version", kVersionOfFile},
               {"model", file.model},
               {"cpu", file.cpu},
               {"isa", file.isa},
               {"threads", file.threads},
               {"kv_dtype", file.kv_dtype},
               {"context_tokens", file.context_tokens},
               {"kv_block_bytes", file.kv_block_bytes}};
  for (size_t i = 0; i < kCostTermNames.size(); ++i) {
    json["microseconds"][std::string(kCostTermNames[i])] = file.fit.model.seconds[i] * 1e6;
  }
  json["relative_error"] = {{"points", file.points.size()},
                            {"rms", file.fit.rms_error},
                            {"p50", file.fit.p50_error},
                            {"p90", file.fit.p90_error},
                            {"max", file.fit.max_error}};
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  // The points one a line, so that the file can be read and compared.
  text.resize(text.rfind('\n'));
  text += ",\n \"points\": [";
  for (size_t i = 0; i < file.points.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "\n  " : ",\n  ",
                    PointJson(file.points[i], file.fit.model).dump());
  }
  return text + "\n ]\n}\n";
}

absl::StatusOr<CostFile> ReadCostFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, size_t{4} << 20));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": wanted one JSON object"));
  }
  Reader reader(path, json);
  const std::string kind = reader.Text("kind");
  const double version = reader.Number("version", 0, 1e6);
  if (reader.status().ok() && (kind != kKind || version != kVersionOfFile)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": got kind '", kind, "' version ",
                                                      version, ", wanted '", kKind, "' version ",
                                                      kVersionOfFile));
  }
  CostFile file;
  file.model = reader.Text("model");
  file.cpu = reader.Text("cpu");
  file.isa = reader.Text("isa");
  file.kv_dtype = reader.Text("kv_dtype");
  file.threads = static_cast<int32_t>(reader.Number("threads", 1, 1024));
  file.context_tokens = static_cast<int32_t>(reader.Number("context_tokens", 2, 1 << 24));
  file.kv_block_bytes = static_cast<int64_t>(reader.Number("kv_block_bytes", 1, 1e12));
  double sum = 0;
  for (size_t i = 0; i < kCostTermNames.size(); ++i) {
    file.fit.model.seconds[i] = reader.Coefficient(kCostTermNames[i]) * 1e-6;
    sum += file.fit.model.seconds[i];
  }
  RETURN_IF_ERROR(reader.status());
  if (!(sum > 0)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": microseconds: all are 0"));
  }
  return file;
}

}  // namespace quire
