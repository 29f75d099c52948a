#include "runtime/kv_cache/kv_pool.h"

#include <utility>

#include "absl/log/check.h"
#include "runtime/base/status_macros.h"

namespace quire {

size_t KvPool::Bytes(const KvLayout& layout, int32_t num_layers, int32_t num_blocks) {
  return layout.block_bytes() * static_cast<size_t>(num_layers) * static_cast<size_t>(num_blocks);
}

absl::StatusOr<KvPool> KvPool::Create(const KvLayout& layout, int32_t num_layers,
                                      int32_t num_blocks, WorkerPool* pool) {
  CHECK(layout.num_kv_heads > 0 && layout.head_dim > 0 && layout.head_dim % 2 == 0);
  CHECK(num_layers > 0 && num_blocks > 0);
  KvPool kv;
  const size_t bytes = Bytes(layout, num_layers, num_blocks);
  ASSIGN_OR_RETURN(kv.arena_, Arena::Create(bytes));
  kv.base_ = kv.arena_.Take(bytes).data();
  if (pool == nullptr) {
    kv.arena_.Touch();
  } else {
    pool->Run([&](int32_t worker) {
      kv.arena_.Touch(static_cast<size_t>(worker), static_cast<size_t>(pool->size()));
    });
  }
  kv.layer_bytes_ = layout.block_bytes() * static_cast<size_t>(num_blocks);
  kv.layout_ = layout;
  kv.num_layers_ = num_layers;
  kv.num_blocks_ = num_blocks;
  return kv;
}

}  // namespace quire
