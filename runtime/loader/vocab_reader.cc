#include "runtime/loader/vocab_reader.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/absl_view.h"

namespace quire {
namespace {

TokenId ReadTokenId(KeyReader& keys, std::string_view name, size_t vocab_size) {
  const std::string key = absl::StrCat("tokenizer.ggml.", View(name), "_token_id");
  if (!keys.Has(key)) return TokenId::kNone;
  const uint32_t id = keys.Uint(key, {});
  if (id < vocab_size) return TokenId{static_cast<int32_t>(id)};
  keys.Problem(key, absl::StrCat("found ", id, ", expected less than the ", vocab_size, " tokens"));
  return TokenId::kNone;
}

std::vector<TokenKind> ReadKinds(KeyReader& keys, size_t vocab_size) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (!keys.Has(kKey)) return std::vector<TokenKind>(vocab_size, TokenKind::kNormal);
  std::vector<TokenKind> kinds;
  const std::vector<int32_t> stored = keys.Ints(kKey, kMaxVocab);
  if (stored.size() != vocab_size) {
    keys.Problem(kKey, absl::StrCat("found ", stored.size(), " entries, expected one for each of ",
                                    vocab_size, " tokens"));
    return kinds;
  }
  kinds.reserve(stored.size());
  for (size_t id = 0; id < stored.size(); ++id) {
    if (stored[id] < 1 || stored[id] > 6) {
      keys.Problem(kKey,
                   absl::StrCat("found ", stored[id], " for token ", id, ", expected 1 to 6"));
      return kinds;
    }
    kinds.push_back(TokenKind{static_cast<uint8_t>(stored[id])});
  }
  return kinds;
}

// By sorting: a hash table would let a file choose colliding pieces.
void WarnOfDuplicates(const VocabData& vocab, std::vector<std::string>& warnings) {
  std::vector<std::string_view> sorted(vocab.pieces.begin(), vocab.pieces.end());
  std::ranges::sort(sorted);
  size_t repeated = 0;
  std::string_view first;
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] == sorted[i - 1] && repeated++ == 0) first = sorted[i];
  }
  if (repeated > 0) {
    warnings.push_back(absl::StrCat("key tokenizer.ggml.tokens: ", repeated,
                                    " pieces are repeated, for one \"", Printable(first),
                                    "\"; the lowest id wins"));
  }
}

}  // namespace

VocabData ReadVocab(KeyReader& keys, std::vector<std::string>& warnings) {
  VocabData vocab;
  vocab.model = keys.String("tokenizer.ggml.model");
  const bool bpe = vocab.model == "gpt2";
  vocab.pre_tokenizer =
      keys.String("tokenizer.ggml.pre", bpe ? std::nullopt : std::optional<std::string>(""));
  vocab.pieces = keys.Strings("tokenizer.ggml.tokens", kMaxVocab);
  if (keys.Has("tokenizer.ggml.tokens") && vocab.pieces.empty()) {
    keys.Problem("tokenizer.ggml.tokens", "found no tokens, expected at least 1");
  }
  if (vocab.pieces.empty()) return vocab;  // the rest would only repeat the problem
  const size_t size = vocab.pieces.size();
  vocab.kinds = ReadKinds(keys, size);
  if (bpe || keys.Has("tokenizer.ggml.merges")) {
    vocab.merges = keys.Strings("tokenizer.ggml.merges", kMaxVocab);
  }
  vocab.bos = ReadTokenId(keys, "bos", size);
  vocab.eos = ReadTokenId(keys, "eos", size);
  vocab.eot = ReadTokenId(keys, "eot", size);
  vocab.pad = ReadTokenId(keys, "padding", size);
  vocab.unknown = ReadTokenId(keys, "unknown", size);
  vocab.add_bos = keys.Bool("tokenizer.ggml.add_bos_token", false);
  vocab.add_eos = keys.Bool("tokenizer.ggml.add_eos_token", false);
  vocab.add_space_prefix = keys.Bool("tokenizer.ggml.add_space_prefix", false);
  vocab.chat_template = keys.String("tokenizer.chat_template", "");
  WarnOfDuplicates(vocab, warnings);
  return vocab;
}

}  // namespace quire
