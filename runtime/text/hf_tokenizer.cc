#include "runtime/text/hf_tokenizer.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <utility>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/error_info.h"
#include "runtime/base/status_macros.h"
#include "runtime/text/bridge_call.h"
#include "runtime/text/control_splitter.h"
#include "runtime/text/utf8.h"

// The bridge knows plain text only. Here the text is split at spelled-out tokens, and ids get their
// byte offsets: byte-level BPE loses nothing but bytes that the vocabulary has no piece for, so
// walking the pieces' bytes along the text gives every offset exactly.
namespace quire {
namespace {

// Tokens that end an assistant's turn in the templates of known model families.
constexpr std::string_view kEndOfTurn[] = {
    "<|im_end|>",    "<|endoftext|>",   "<|eot_id|>",         "<|eom_id|>", "<|end|>",
    "<|return|>",    "<|call|>",        "<|end_of_text|>",    "</s>",       "<end_of_turn>",
    "<|endofturn|>", "<|end_of_turn|>", "<end_of_utterance>", "<EOT>"};

// The byte-level alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 and up,
// in order.
std::array<char32_t, 256> ByteAlphabet() {
  std::array<char32_t, 256> alphabet;
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    alphabet[b] = printable ? static_cast<char32_t>(b) : next++;
  }
  return alphabet;
}

// Bytes of a piece in the byte-level alphabet; nothing if a character is outside of it.
std::optional<std::string> PieceBytes(std::string_view piece) {
  static const std::array<int16_t, 0x144> kByteOf = [] {
    std::array<int16_t, 0x144> byte_of;
    byte_of.fill(-1);
    const auto alphabet = ByteAlphabet();
    for (int b = 0; b < 256; ++b) byte_of[alphabet[b]] = static_cast<int16_t>(b);
    return byte_of;
  }();
  std::string bytes;
  for (size_t i = 0; i < piece.size(); ++i) {
    uint32_t c = static_cast<uint8_t>(piece[i]);
    if (c >= 0x80) {  // the alphabet has code points of at most two bytes
      if ((c & 0xE0) != 0xC0 || i + 1 == piece.size()) return std::nullopt;
      c = (c & 0x1F) << 6 | (static_cast<uint8_t>(piece[++i]) & 0x3F);
    }
    if (c >= kByteOf.size() || kByteOf[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOf[c]));
  }
  return bytes;
}

class HfTokenizer final : public Tokenizer {
 public:
  HfTokenizer(const VocabData& vocab, QuireBridgeTokenizer* bridge);
  ~HfTokenizer() override { quire_bridge_tokenizer_free(bridge_); }

  absl::StatusOr<std::vector<TokenSpan>> Encode(std::string_view text,
                                                const EncodeOptions& options) const override;
  int64_t AtLeastTokens(std::string_view text) const override;
  std::string_view Piece(TokenId id) const override { return pieces_[Index(id)]; }
  std::string_view Spelling(TokenId id) const override { return spellings_[Index(id)]; }
  bool IsControl(TokenId id) const override { return kinds_[Index(id)] == TokenKind::kControl; }
  int32_t vocab_size() const override { return static_cast<int32_t>(spellings_.size()); }
  TokenId bos() const override { return bos_; }
  const std::vector<TokenId>& eos_ids() const override { return eos_ids_; }

 private:
  static size_t Index(TokenId id) { return static_cast<size_t>(id); }
  void SetEosIds(const VocabData& vocab);
  ControlSplitter SplitterOf(bool control) const;
  absl::Status EncodePlain(std::string_view text, size_t begin, std::vector<TokenSpan>& out) const;

  QuireBridgeTokenizer* const bridge_;
  std::vector<std::string> spellings_, pieces_;
  std::vector<TokenKind> kinds_;
  TokenId bos_, eos_;
  bool add_bos_, add_eos_;
  std::vector<TokenId> eos_ids_;
  int64_t longest_ = 1;           // bytes of text that one token stands for, control tokens too
  std::bitset<256> known_bytes_;  // bytes that are a piece of their own; text loses the others
  ControlSplitter user_defined_{{}}, all_special_{{}};
};

HfTokenizer::HfTokenizer(const VocabData& vocab, QuireBridgeTokenizer* bridge)
    : bridge_(bridge),
      spellings_(vocab.pieces),
      kinds_(vocab.kinds),
      bos_(vocab.bos),
      eos_(vocab.eos),
      add_bos_(vocab.add_bos && vocab.bos != TokenId::kNone),
      add_eos_(vocab.add_eos && vocab.eos != TokenId::kNone) {
  pieces_.reserve(spellings_.size());
  for (size_t i = 0; i < spellings_.size(); ++i) {
    longest_ = std::max(longest_, static_cast<int64_t>(spellings_[i].size()));
    if (kinds_[i] == TokenKind::kControl) {
      pieces_.emplace_back();
      continue;
    }
    auto bytes = kinds_[i] == TokenKind::kUserDefined ? std::nullopt : PieceBytes(spellings_[i]);
    if (bytes.has_value() && bytes->size() == 1)
      known_bytes_.set(static_cast<uint8_t>(bytes->front()));
    pieces_.push_back(bytes.has_value() ? *std::move(bytes) : spellings_[i]);
  }
  SetEosIds(vocab);
  user_defined_ = SplitterOf(false);
  all_special_ = SplitterOf(true);
}

void HfTokenizer::SetEosIds(const VocabData& vocab) {
  const auto add = [this](TokenId id) {
    if (id != TokenId::kNone && !std::ranges::contains(eos_ids_, id)) eos_ids_.push_back(id);
  };
  add(vocab.eos);
  add(vocab.eot);
  for (size_t i = 0; i < spellings_.size(); ++i) {
    if (kinds_[i] == TokenKind::kControl && std::ranges::contains(kEndOfTurn, spellings_[i])) {
      add(static_cast<TokenId>(i));
    }
  }
}

ControlSplitter HfTokenizer::SplitterOf(bool control) const {
  std::vector<ControlSplitter::Entry> entries;
  for (size_t i = 0; i < spellings_.size(); ++i) {
    if (kinds_[i] == TokenKind::kUserDefined || (control && kinds_[i] == TokenKind::kControl)) {
      entries.push_back({spellings_[i], static_cast<TokenId>(i)});
    }
  }
  return ControlSplitter(std::move(entries));
}

absl::Status HfTokenizer::EncodePlain(std::string_view text, size_t begin,
                                      std::vector<TokenSpan>& out) const {
  if (text.empty()) return absl::OkStatus();
  QuireBridgeIds ids = {};
  BridgeBytes error;
  RETURN_IF_ERROR(
      BridgeStatus(quire_bridge_encode(bridge_, ToSlice(text), &ids, error.out()), error, ""));
  out.reserve(out.size() + ids.size);
  size_t at = 0;
  bool in_step = true;
  for (size_t i = 0; i < ids.size && in_step; ++i) {
    TokenSpan span{
        .id = static_cast<TokenId>(ids.data[i]), .begin_byte = -1, .end_byte = 0, .special = false};
    for (const char byte : pieces_[ids.data[i]]) {
      while (at < text.size() && !known_bytes_[static_cast<uint8_t>(text[at])]) ++at;
      in_step = in_step && at < text.size() && text[at] == byte;
      if (!in_step) break;
      if (span.begin_byte < 0) span.begin_byte = static_cast<int32_t>(begin + at);
      ++at;
    }
    span.end_byte = static_cast<int32_t>(begin + at);
    out.push_back(span);
  }
  while (at < text.size() && !known_bytes_[static_cast<uint8_t>(text[at])]) ++at;
  quire_bridge_ids_free(ids);
  if (!in_step || at != text.size()) {
    LOG(ERROR) << "encoded pieces and text part at byte " << at << " of " << text.size();
    return absl::InternalError("the tokenizer lost part of the text");
  }
  return absl::OkStatus();
}

int64_t HfTokenizer::AtLeastTokens(std::string_view text) const {
  // Bytes without a piece may be lost on the way; a piece is never longer than its spelling.
  const int64_t kept = std::ranges::count_if(
      text, [this](char byte) { return known_bytes_[static_cast<uint8_t>(byte)]; });
  return (kept + longest_ - 1) / longest_;
}

absl::StatusOr<std::vector<TokenSpan>> HfTokenizer::Encode(std::string_view text,
                                                           const EncodeOptions& options) const {
  if (text.size() > INT32_MAX) return absl::InvalidArgumentError("the text is above 2 GiB");
  if (!IsValidUtf8(text)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "the text is not valid UTF-8",
                     {.reason = "FIELD_INVALID", .metadata = {}, .violations = {}});
  }
  const ControlSplitter& splitter = options.parse_special_tokens ? all_special_ : user_defined_;
  std::vector<TokenSpan> out;
  for (size_t at = 0; at < text.size();) {
    const ControlSplitter::Match match = splitter.Next(text, at);
    const size_t plain_end = match.end == 0 ? text.size() : match.begin;
    RETURN_IF_ERROR(EncodePlain(text.substr(at, plain_end - at), at, out));
    if (match.end == 0) break;
    out.push_back({.id = match.id,
                   .begin_byte = static_cast<int32_t>(match.begin),
                   .end_byte = static_cast<int32_t>(match.end),
                   .special = IsControl(match.id)});
    at = match.end;
  }
  if (options.add_special_tokens) {
    const bool has_bos = !out.empty() && out.front().id == bos_;
    if (add_bos_ && !has_bos)
      out.insert(out.begin(), {.id = bos_, .begin_byte = 0, .end_byte = 0, .special = true});
    const auto end = static_cast<int32_t>(text.size());
    if (add_eos_) out.push_back({.id = eos_, .begin_byte = end, .end_byte = end, .special = true});
  }
  return out;
}

absl::Status CheckVocab(const VocabData& vocab) {
  if (vocab.model != "gpt2") {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer model \"", vocab.model, "\" is not known; known: gpt2"));
  }
  if (vocab.pieces.empty() || vocab.kinds.size() != vocab.pieces.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer: ", vocab.pieces.size(), " pieces, but ", vocab.kinds.size(), " token types"));
  }
  const auto size = static_cast<int32_t>(vocab.pieces.size());
  const std::pair<std::string_view, TokenId> ids[] = {{"bos", vocab.bos},
                                                      {"eos", vocab.eos},
                                                      {"eot", vocab.eot},
                                                      {"pad", vocab.pad},
                                                      {"unknown", vocab.unknown}};
  for (const auto& [name, id] : ids) {
    if (static_cast<int32_t>(id) < -1 || static_cast<int32_t>(id) >= size) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", View(name), " id is ",
                                                     static_cast<int32_t>(id),
                                                     ", the vocabulary has ", size, " pieces"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>& KnownPreTokenizers() {
  static const auto& names = *[] {
    auto* list = new std::vector<std::string>(1);
    for (const char c : FromSlice(quire_bridge_pre_tokenizers())) {
      if (c == ' ') {
        list->emplace_back();
      } else {
        list->back().push_back(c);
      }
    }
    return list;
  }();
  return names;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const VocabData& vocab) {
  RETURN_IF_ERROR(CheckVocab(vocab));
  std::vector<QuireBridgeSlice> pieces(vocab.pieces.size()), merges(vocab.merges.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    // Tokens that the splitter finds are no business of the merges.
    const bool spelled =
        vocab.kinds[i] == TokenKind::kControl || vocab.kinds[i] == TokenKind::kUserDefined;
    pieces[i] = ToSlice(spelled ? std::string_view() : vocab.pieces[i]);
  }
  for (size_t i = 0; i < merges.size(); ++i) merges[i] = ToSlice(vocab.merges[i]);
  const QuireBridgeVocab bridge_vocab = {.pre_tokenizer = ToSlice(vocab.pre_tokenizer),
                                         .pieces = pieces.data(),
                                         .piece_count = pieces.size(),
                                         .merges = merges.data(),
                                         .merge_count = merges.size()};
  QuireBridgeTokenizer* bridge = nullptr;
  BridgeBytes error;
  RETURN_IF_ERROR(
      BridgeStatus(quire_bridge_tokenizer_new(&bridge_vocab, &bridge, error.out()), error, ""));
  return std::make_unique<HfTokenizer>(vocab, bridge);
}

}  // namespace quire
