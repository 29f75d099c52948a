#include "server/cli/output_text.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/text/utf8.h"

namespace quire {
namespace {

// Quoted, with what a terminal cannot show escaped.
std::string Quoted(const std::string& piece) {
  return absl::StrCat(
      "'", IsValidUtf8(piece) ? absl::Utf8SafeCHexEscape(piece) : absl::CHexEscape(piece), "'");
}

size_t Width(const std::string& utf8) {  // in code points
  return static_cast<size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

std::string Padded(std::string text, size_t width) {
  text.append(width - std::min(width, Width(text)), ' ');
  return text;
}

}  // namespace

std::string TokenTable(const TokenList& tokens) {
  size_t piece_width = 5, top_width = 0;
  bool tops = false;
  for (const v1::TokenInfo& token : tokens) {
    piece_width = std::max(piece_width, Width(Quoted(token.piece())));
    for (const v1::Candidate& c : token.top()) {
      top_width = std::max(top_width, Width(Quoted(c.piece())));
      tops = true;
    }
  }
  if (tokens.empty()) return "";
  std::string text = absl::StrFormat("%s    logprob   rank      id%s\n",
                                     Padded("token", piece_width), tops ? "  alternatives" : "");
  for (const v1::TokenInfo& token : tokens) {
    absl::StrAppendFormat(&text, "%s %10.5f %6u %7u", Padded(Quoted(token.piece()), piece_width),
                          token.logprob(), token.rank(), token.id());
    for (const v1::Candidate& c : token.top()) {
      absl::StrAppendFormat(&text, "  %s %9.5f", Padded(Quoted(c.piece()), top_width), c.logprob());
    }
    text += "\n";
  }
  return text;
}

std::string OutputText::Take(const v1::GenerateResponse& message) {
  if (message.has_delta()) {
    const v1::Delta& delta = message.delta();
    Output& output = outputs_[delta.output_index()];
    output.tokens.MergeFrom(delta.tokens());
    if (several_) {
      output.text += delta.text();
      return "";
    }
    streamed_ |= !delta.text().empty();
    return delta.text();
  }
  if (!several_ || !message.has_finished()) return "";
  const uint32_t index = message.finished().output_index();
  std::string text = Whole(index, outputs_[index]);
  outputs_.erase(index);
  return text;
}

std::string OutputText::End(bool ok) {
  std::string text;
  if (!several_ && (ok || streamed_)) text = "\n";
  for (const auto& [index, output] : outputs_) {
    text += several_ ? Whole(index, output) : TokenTable(output.tokens);
  }
  outputs_.clear();
  return text;
}

std::string OutputText::Whole(uint32_t index, const Output& output) {
  return absl::StrCat("[", index, "] ", output.text, "\n", TokenTable(output.tokens));
}

}  // namespace quire
