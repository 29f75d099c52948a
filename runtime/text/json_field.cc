#include "runtime/text/json_field.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/absl_view.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

// Receives the parser's events and writes the text again. Returning false ends the parse; error_
// says why.
class Rewriter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Rewriter(const JsonField& field) : field_(field) {}

  bool null() override { return Literal("null"); }
  bool boolean(bool value) override { return Literal(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return Literal(absl::StrCat(value)); }
  bool number_unsigned(uint64_t value) override { return Literal(absl::StrCat(value)); }
  bool number_float(double, const std::string& text) override { return Literal(text); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool string(std::string& value) override {
    if (depth_ == 0) return WrongKind();
    Separate();
    AppendJsonString(Replaced(value), out_);
    return true;
  }
  bool key(std::string& value) override {
    if (depth_ == 1 &&
        std::ranges::find(field_.reserved, std::string_view(value)) != field_.reserved.end()) {
      return Fail(absl::StrCat("sets ", value));
    }
    Separate();
    AppendJsonString(Replaced(value), out_);
    out_.push_back(':');
    first_ = true;  // no comma before the value
    return true;
  }
  bool start_object(size_t) override { return Open('{'); }
  bool start_array(size_t) override { return Open('['); }
  bool end_object() override { return Close('}'); }
  bool end_array() override { return Close(']'); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return Fail("not valid JSON");
  }

  const std::string& error() const { return error_; }
  std::string TakeOut() { return std::move(out_); }

 private:
  bool Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
    return false;
  }
  void Separate() {
    if (!first_) out_.push_back(',');
    first_ = false;
  }
  bool Literal(std::string_view text) {
    if (depth_ == 0) return WrongKind();
    Separate();
    out_.append(text);
    return true;
  }
  bool WrongKind() {
    return Fail(field_.kind == JsonField::Kind::kObject ? "JSON, but not an object"
                                                        : "JSON, but not an array");
  }
  bool Open(char bracket) {
    if (depth_ == 0 && bracket != (field_.kind == JsonField::Kind::kObject ? '{' : '['))
      return WrongKind();
    if (++depth_ > kMaxJsonDepth)
      return Fail(absl::StrCat("JSON nested over ", kMaxJsonDepth, " deep"));
    Separate();
    out_.push_back(bracket);
    first_ = true;
    return true;
  }
  bool Close(char bracket) {
    --depth_;
    out_.push_back(bracket);
    first_ = false;
    return true;
  }
  std::string Replaced(const std::string& text) const {
    return field_.on_string ? field_.on_string(text) : text;
  }

  const JsonField& field_;
  std::string out_, error_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace

absl::StatusOr<std::string> RewriteJson(const JsonField& field, std::string_view text) {
  if (text.empty()) return field.kind == JsonField::Kind::kObject ? "{}" : "[]";
  Rewriter rewriter(field);
  // The parser keeps its own stack of brackets and throws nothing when events are consumed here.
  if (!nlohmann::json::sax_parse(text, &rewriter))
    return InvalidField(field.field, rewriter.error());
  return rewriter.TakeOut();
}

void AppendJsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<int>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace quire
