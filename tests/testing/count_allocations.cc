#include "tests/testing/count_allocations.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> ours{0}, onednn{0};

bool IsOneDnn(void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

void* Allocate(std::size_t size, std::size_t alignment, void* caller) {
  if (counting.load(std::memory_order_relaxed)) {
    (IsOneDnn(caller) ? onednn : ours).fetch_add(1, std::memory_order_relaxed);
  }
  if (size == 0) size = 1;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

namespace quire {

AllocationCounter::AllocationCounter() {
  ::ours = 0;
  ::onednn = 0;
  counting = true;
}
AllocationCounter::~AllocationCounter() { counting = false; }
int64_t AllocationCounter::ours() const { return ::ours; }
int64_t AllocationCounter::onednn() const { return ::onednn; }

}  // namespace quire

void* operator new(std::size_t size) { return Allocate(size, 1, __builtin_return_address(0)); }
void* operator new[](std::size_t size) { return Allocate(size, 1, __builtin_return_address(0)); }
void* operator new(std::size_t size, std::align_val_t a) {
  return Allocate(size, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t a) {
  return Allocate(size, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size, 1, __builtin_return_address(0));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size, 1, __builtin_return_address(0));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
