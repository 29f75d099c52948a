#include "runtime/text/incremental_detokenizer.h"

#include "runtime/text/utf8.h"

namespace quire {

int32_t IncrementalDetokenizer::Append(TokenId id) {
  const std::string_view piece = tokenizer_->Piece(id);
  bytes_.append(piece);
  return static_cast<int32_t>(piece.size());
}

IncrementalDetokenizer::Taken IncrementalDetokenizer::Take(size_t limit) {
  Taken taken;
  const std::string_view raw = pending().substr(0, limit);
  // A limit inside the pending bytes may cut a code point: then it waits, whole.
  taken.raw_bytes = CompletePrefix(raw);
  AppendUtf8(raw.substr(0, taken.raw_bytes), taken.text);
  taken_ += taken.raw_bytes;
  if (taken_ > 64 && taken_ * 2 > bytes_.size()) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  return taken;
}

IncrementalDetokenizer::Taken IncrementalDetokenizer::Flush(size_t limit) {
  Taken taken;
  const std::string_view raw = pending().substr(0, limit);
  taken.raw_bytes = raw.size();
  AppendUtf8(raw, taken.text);
  bytes_.clear();
  taken_ = 0;
  return taken;
}

}  // namespace quire
