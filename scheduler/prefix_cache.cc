#include "scheduler/prefix_cache.h"

namespace quire {

PrefixCache::PrefixCache(BlockPool& pool, const PrefixCacheOptions& options)
    : pool_(pool), options_(options), index_(pool, options.index) {
  found_.resize(static_cast<size_t>(BlocksFor(options.context_tokens)));
}

PrefixMatch PrefixCache::Find(const Sequence& sequence) {
  if (!Uses(sequence)) return {};
  ++stats_.lookups;
  const std::span<const TokenId> tokens = sequence.tokens;
  return index_.Find(sequence.scope(), tokens.first(tokens.size() - 1), found_);
}

void PrefixCache::PublishFull(Sequence& sequence, int32_t before) {
  if (!Uses(sequence)) return;
  const int32_t end = sequence.num_computed / kBlockTokens;
  for (int32_t i = before / kBlockTokens; i < end; ++i) {
    if (!PublishBlock(sequence, i, kBlockTokens)) return;
  }
}

void PrefixCache::PublishTail(Sequence& sequence) {
  const int32_t tokens = sequence.num_computed % kBlockTokens;
  if (tokens == 0 || !Uses(sequence)) return;
  const int32_t tail = sequence.num_computed / kBlockTokens;
  // Another output that holds it too may be about to write it, and have no block for a copy.
  if (pool_.ref_count(sequence.blocks.at(tail)) == 1) PublishBlock(sequence, tail, tokens);
}

// False: what precedes it cannot be found, so neither can it or what follows.
bool PrefixCache::PublishBlock(Sequence& sequence, int32_t block, int32_t tokens) {
  const BlockId own = sequence.blocks.at(block);
  const BlockId parent = block == 0 ? BlockId::kNone : sequence.blocks.at(block - 1);
  if (own == BlockId::kNone) return false;
  if (index_.contains(own)) return true;
  if (block > 0 && (parent == BlockId::kNone || !index_.contains(parent))) return false;
  const std::span<const TokenId> known = sequence.tokens;
  const BlockId found = index_.Publish(
      parent, sequence.scope(),
      known.subspan(static_cast<size_t>(block) * kBlockTokens, static_cast<size_t>(tokens)), own);
  if (found != own && tokens == kBlockTokens) sequence.blocks.Replace(block, found);
  return true;
}

// Most go with the first: what follows a block that is withdrawn is withdrawn too. What a window
// has given back is no longer in the table, but can be found.
void PrefixCache::Withdraw(const Sequence& sequence) {
  for (BlockId id : sequence.blocks.ids()) {
    if (id != BlockId::kNone) index_.Withdraw(id);
  }
  if (sequence.request->kv.window_tokens == 0 || !Uses(sequence)) return;
  const PrefixMatch passed = index_.Find(sequence.scope(), sequence.tokens, found_);
  if (!passed.full.empty()) index_.Withdraw(passed.full.front());
}

void PrefixCache::EnsureFree(int32_t blocks) {
  while (pool_.num_free() < blocks) {
    const int32_t before = index_.size();
    index_.Withdraw(pool_.OldestCached());
    stats_.evictions += before - index_.size();
  }
}

void PrefixCache::CountQuery(int32_t tokens, int32_t hit) {
  stats_.query_tokens += tokens;
  stats_.hit_tokens += hit;
}

}  // namespace quire
