#include "runtime/kernels/onednn/brgemm.h"

#include <mutex>

#include "absl/log/check.h"
#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "oneapi/dnnl/dnnl_ukernel.h"
#include "runtime/base/cpu_features.h"

namespace quire {
namespace {

dnnl_cpu_isa_t DnnlIsa(IsaLevel isa) {
  switch (isa) {
    case IsaLevel::kScalar:
      return dnnl_cpu_isa_sse41;  // no brgemm there: Create refuses
    case IsaLevel::kAvx2:
      return dnnl_cpu_isa_avx2;
    case IsaLevel::kAvx512:
      return dnnl_cpu_isa_avx512_core_vnni;
    case IsaLevel::kAvx512Bf16:
      return dnnl_cpu_isa_avx512_core_bf16;
    case IsaLevel::kAmx:
      return dnnl_cpu_isa_default;
  }
  return dnnl_cpu_isa_sse41;
}

// oneDNN takes its level before the first other call, once per process.
void LimitIsaOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (dnnl_set_max_cpu_isa(DnnlIsa(ActiveIsa())) != dnnl_success) {
      LOG(WARNING) << "oneDNN keeps its own instruction set level instead of "
                   << IsaName(ActiveIsa());
    }
  });
}

absl::Status ToStatus(dnnl_status_t status, const char* step, const BrgemmShape& s) {
  if (status == dnnl_success) return absl::OkStatus();
  const std::string text =
      absl::StrCat("oneDNN brgemm ", s.m, "x", s.n, "x", s.k, s.bf16 ? " bf16: " : ": ", step,
                   " failed with status ", static_cast<int>(status));
  return status == dnnl_unimplemented ? absl::UnimplementedError(text)
                                      : absl::FailedPreconditionError(text);
}

}  // namespace

absl::StatusOr<Brgemm> Brgemm::Create(const BrgemmShape& s) {
  // oneDNN does not look at the strides.
  if (s.m < 1 || s.n < 1 || s.k < 1 || s.lda < s.k || s.ldb < s.n || s.ldc < s.n ||
      (s.bf16 && s.k % 2 != 0)) {
    return ToStatus(dnnl_invalid_arguments, "shape check", s);
  }
  LimitIsaOnce();
  Brgemm result;
  dnnl_brgemm_t handle = nullptr;
  const dnnl_data_type_t type = s.bf16 ? dnnl_bf16 : dnnl_f32;
  absl::Status status = ToStatus(dnnl_brgemm_create(&handle, s.m, s.n, s.k, /*batch_size=*/1, s.lda,
                                                    s.ldb, s.ldc, type, type, dnnl_f32),
                                 "create", s);
  if (!status.ok()) return status;
  result.handle_ = handle;
  // The order is oneDNN's: options, finalize, sizes, generate.
  status = ToStatus(dnnl_brgemm_set_add_C(handle, s.add_c), "set_add_C", s);
  if (status.ok()) status = ToStatus(dnnl_brgemm_finalize(handle), "finalize", s);
  dnnl_pack_type_t pack = dnnl_pack_type_undef;
  if (status.ok())
    status = ToStatus(dnnl_brgemm_get_B_pack_type(handle, &pack), "get_B_pack_type", s);
  if (status.ok() && pack != (s.bf16 ? dnnl_pack_type_pack32 : dnnl_pack_type_no_trans)) {
    status = absl::UnimplementedError("oneDNN brgemm wants B packed in another way");
  }
  if (status.ok()) {
    status = ToStatus(dnnl_brgemm_get_scratchpad_size(handle, &result.scratch_bytes_),
                      "get_scratchpad_size", s);
  }
  if (status.ok()) status = ToStatus(dnnl_brgemm_generate(handle), "generate", s);
  if (!status.ok()) return status;
  return result;
}

Brgemm::~Brgemm() {
  if (handle_ != nullptr) dnnl_brgemm_destroy(static_cast<dnnl_brgemm_t>(handle_));
}

void Brgemm::Run(const void* a, const void* b, float* c, std::byte* scratch) const {
  static constexpr dnnl_dim_t kOffsets[2] = {0, 0};
  const dnnl_status_t status =
      dnnl_brgemm_execute(static_cast<dnnl_brgemm_t>(handle_), a, b, kOffsets, c, scratch);
  CHECK_EQ(status, dnnl_success);
}

}  // namespace quire
