// The memory of the paged KV cache: num_blocks blocks for every layer, reserved, zeroed and touched
// at start. It knows blocks and slots, not sequences. Immutable after Create, the bytes are written
// by the kernel workers under the rule of one writer per slot; it owns the memory that its views
// point into.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/worker_pool.h"
#include "runtime/kv_cache/kv_layout.h"
#include "runtime/tensor/arena.h"

namespace quire {

class KvPool {
 public:
  KvPool() = default;

  // Bytes that Create reserves.
  static size_t Bytes(const KvLayout& layout, int32_t num_layers, int32_t num_blocks);
  // The workers of `pool`, if there is one, touch the memory together. RESOURCE_EXHAUSTED if the
  // system refuses it. All numbers positive.
  static absl::StatusOr<KvPool> Create(const KvLayout& layout, int32_t num_layers,
                                       int32_t num_blocks, WorkerPool* pool = nullptr);

  const KvLayout& layout() const { return layout_; }
  int32_t num_layers() const { return num_layers_; }
  int32_t num_blocks() const { return num_blocks_; }
  size_t bytes() const { return arena_.size(); }
  KvLayerView Layer(int32_t layer) const {
    return {base_ + static_cast<size_t>(layer) * layer_bytes_, layout_};
  }

 private:
  Arena arena_;
  std::byte* base_ = nullptr;
  size_t layer_bytes_ = 0;
  KvLayout layout_;
  int32_t num_layers_ = 0, num_blocks_ = 0;
};

}  // namespace quire
