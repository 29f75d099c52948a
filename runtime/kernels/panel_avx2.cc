// Panel kernels of the avx2 level. Products of code bytes and activations are summed in 16-bit
// lanes as long as they cannot overflow (see kFold), then widened; Q8_0 moves the weight's sign to
// the activation. A tile is MR rows x one panel (two registers of 8 rows). Few rows read codes
// straight from the panel; many rows unpack up to kChunkBlocks blocks to bytes in L1 first and
// sweep. All ways give the same bits: the integer part is exact and the float part has one order.
#include <immintrin.h>

#include "runtime/kernels/panel.h"
#include "runtime/kernels/panel_format.h"

namespace quire {
namespace {

#define QUIRE_INLINE [[gnu::always_inline]] inline
#define QUIRE_PRAGMA(text) _Pragma(#text)
#define QUIRE_UNROLL(n) QUIRE_PRAGMA(GCC unroll n)

constexpr int32_t kChunkBlocks = 24;     // 15 KB unpacked
constexpr int32_t kUnpackedBytes = 640;  // f32 a[16], f32 b[16], 512 code bytes
constexpr int32_t kSweepRows = 16;       // from so many rows on, unpacking pays
constexpr int32_t kRowBlock = 128;       // activation rows that stay in L2
constexpr int32_t kPrefetchBytes = 8192;
static_assert(kChunkBlocks * kUnpackedBytes <= kPanelScratchBytes);

QUIRE_INLINE __m256i Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
QUIRE_INLINE __m256 LoadHalf(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
QUIRE_INLINE __m256i Broadcast4(const int8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}
QUIRE_INLINE void Prefetch(const uint8_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}
// As asm: the compiler would delay the adds and keep all products alive, spilling in the inner
// loop.
QUIRE_INLINE void Add16(__m256i& s, __m256i p) { asm("vpaddw %1, %0, %0" : "+x"(s) : "x"(p)); }
QUIRE_INLINE void Add32(__m256i& s, __m256i p) { asm("vpaddd %1, %0, %0" : "+x"(s) : "x"(p)); }
QUIRE_INLINE __m256i Widen(__m256i s16) { return _mm256_madd_epi16(s16, _mm256_set1_epi16(1)); }

// 16 f32 lanes: the shim of the float kernels.
struct Avx2 {
  struct F {
    __m256 lo, hi;
  };
  static constexpr int kFloatRows = 3, kFloatPanels = 2, kFloatLonePanels = 4;

  QUIRE_INLINE static F ZeroF() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  QUIRE_INLINE static F LoadF32(const uint8_t* p) {
    const auto* f = reinterpret_cast<const float*>(p);
    return {_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)};
  }
  QUIRE_INLINE static F LoadHalf(const uint8_t* p) {
    return {quire::LoadHalf(p), quire::LoadHalf(p + 16)};
  }
  QUIRE_INLINE static __m256 Bf16(const uint8_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  QUIRE_INLINE static F LoadBf16(const uint8_t* p) { return {Bf16(p), Bf16(p + 16)}; }
  QUIRE_INLINE static F FmaBroadcast(F a, const float* p, F c) {
    const __m256 b = _mm256_broadcast_ss(p);
    return {_mm256_fmadd_ps(a.lo, b, c.lo), _mm256_fmadd_ps(a.hi, b, c.hi)};
  }
  QUIRE_INLINE static void Store(float* p, F v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
  }
};

#include "runtime/kernels/panel_traits-inl.h"
// After the traits that they use.
#include "runtime/kernels/panel_float-inl.h"

// Groups whose products one 16-bit lane can hold: 2 * largest code * 127 * n <= 32767.
template <DType kType>
inline constexpr int kFold = kType == DType::kQ6_K                    ? 2
                             : PanelFormatOf(kType).plane_bytes == 64 ? 4
                                                                      : 8;

// Codes of group g, rows 8h..8h+7, out of a packed block. Q8_0: signed, others unsigned.
template <DType kType>
struct PackedCodes {
  const uint8_t* block;

  QUIRE_INLINE __m256i operator()(int g, int h) const {
    using T = Traits<kType>;
    const uint8_t* plane = block + T::kFormat.scale_bytes + 32 * h;
    const uint8_t* quants = plane + T::kFormat.plane_bytes;
    if constexpr (kType == DType::kQ8_0) {
      return Load(quants + 64 * g);
    } else {
      __m256i code = Load(quants + 64 * (g % 4));
      if (g >= 4) code = _mm256_srli_epi16(code, 4);
      code = _mm256_and_si256(code, _mm256_set1_epi8(0x0f));
      if constexpr (T::kFormat.plane_bytes == 64) {
        const __m256i bits = Load(plane);
        const __m256i placed =
            g <= 4 ? _mm256_slli_epi16(bits, 4 - g) : _mm256_srli_epi16(bits, g - 4);
        code = _mm256_or_si256(code, _mm256_and_si256(placed, _mm256_set1_epi8(0x10)));
      }
      if constexpr (T::kFormat.plane_bytes == 128) {
        const __m256i bits = Load(plane + 64 * (g / 4));
        const int at = 2 * (g % 4);
        const __m256i placed =
            at <= 4 ? _mm256_slli_epi16(bits, 4 - at) : _mm256_srli_epi16(bits, at - 4);
        code = _mm256_or_si256(code, _mm256_and_si256(placed, _mm256_set1_epi8(0x30)));
      }
      return code;
    }
  }
};

struct UnpackedCodes {
  const uint8_t* codes;
  QUIRE_INLINE __m256i operator()(int g, int h) const { return Load(codes + 64 * g + 32 * h); }
};

// The i-th group in the order of use: neighbours g, g + 4 share their nibble line. Types with 16-k
// scales need all of the first half before the second.
template <DType kType>
QUIRE_INLINE constexpr int GroupAt(int i) {
  return Traits<kType>::kHalves ? i : i / 2 + 4 * (i % 2);
}

// s[r][h] = exact sums over groups GroupAt(first .. first + count - 1) of rows r, panel half h.
template <DType kType, int MR, class Codes>
QUIRE_INLINE void SumGroups(const Codes& codes, const ActTile& acts, int first, int count,
                            __m256i (&s)[MR][2]) {
  __m256i part[MR][2];
  QUIRE_UNROLL(8)
  for (int i = 0; i < count; ++i) {
    const int g = GroupAt<kType>(first + i);
    const __m256i w0 = codes(g, 0), w1 = codes(g, 1);
    QUIRE_UNROLL(4)
    for (int r = 0; r < MR; ++r) {
      const __m256i a = Broadcast4(acts.Q(r) + 4 * g);
      if constexpr (kType == DType::kQ8_0) {
        const __m256i p0 =
            Widen(_mm256_maddubs_epi16(_mm256_abs_epi8(w0), _mm256_sign_epi8(a, w0)));
        const __m256i p1 =
            Widen(_mm256_maddubs_epi16(_mm256_abs_epi8(w1), _mm256_sign_epi8(a, w1)));
        if (i == 0) {
          s[r][0] = p0;
          s[r][1] = p1;
        } else {
          Add32(s[r][0], p0);
          Add32(s[r][1], p1);
        }
      } else {
        const __m256i p0 = _mm256_maddubs_epi16(w0, a), p1 = _mm256_maddubs_epi16(w1, a);
        if (i % kFold<kType> == 0) {
          part[r][0] = p0;
          part[r][1] = p1;
        } else {
          Add16(part[r][0], p0);
          Add16(part[r][1], p1);
        }
      }
    }
    if (kType == DType::kQ8_0 || (i + 1) % kFold<kType> != 0) continue;
    QUIRE_UNROLL(4)
    for (int r = 0; r < MR; ++r) {
      QUIRE_UNROLL(2)
      for (int h = 0; h < 2; ++h) {
        if (i < kFold<kType>) {
          s[r][h] = Widen(part[r][h]);
        } else {
          Add32(s[r][h], Widen(part[r][h]));
        }
      }
    }
  }
}

// Scales of half a panel: see LoadScales of the VNNI kernels.
struct HalfScales {
  __m256 a, b;
};

template <int kShift>
QUIRE_INLINE __m256i BroadcastShifted(const int32_t* p) {
  return _mm256_slli_epi32(_mm256_set1_epi32(*p), kShift);
}

// f[r][h] += the block's part.
template <DType kType, int MR, class Codes>
QUIRE_INLINE void AddBlock(const Codes& codes, const HalfScales (&k)[2], const ActTile& acts,
                           __m256 (&f)[MR][2]) {
  using T = Traits<kType>;
  constexpr int kPasses = T::kHalves ? 2 : 1, kGroups = 8 / kPasses;
  QUIRE_UNROLL(2)
  for (int pass = 0; pass < kPasses; ++pass) {
    __m256i s[MR][2];
    SumGroups<kType>(codes, acts, pass * kGroups, kGroups, s);
    QUIRE_UNROLL(4)
    for (int r = 0; r < MR; ++r) {
      const ActScale* a = acts.Scale(r);
      QUIRE_UNROLL(2)
      for (int h = 0; h < 2; ++h) {
        __m256i sum = s[r][h];
        if constexpr (T::kHalves) {
          const __m256i lo = BroadcastShifted<T::kOffsetShift>(&a->neg_sum_lo);
          const __m256i off =
              pass == 0 ? lo : _mm256_sub_epi32(BroadcastShifted<T::kOffsetShift>(&a->neg_sum), lo);
          sum = _mm256_add_epi32(sum, off);
        } else if constexpr (T::kOffsetShift >= 0 && kType != DType::kQ8_0) {
          sum = _mm256_add_epi32(sum, BroadcastShifted<T::kOffsetShift>(&a->neg_sum));
        }
        const __m256 scale = pass == 0 ? k[h].a : k[h].b;
        f[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum),
                                  _mm256_mul_ps(scale, _mm256_broadcast_ss(&a->d)), f[r][h]);
        if constexpr (T::kHasMin)
          f[r][h] = _mm256_fmadd_ps(k[h].b, _mm256_broadcast_ss(&a->d_sum), f[r][h]);
      }
    }
  }
}

template <DType kType>
QUIRE_INLINE HalfScales LoadScales(const uint8_t* header, const uint8_t* block, int h) {
  using T = Traits<kType>;
  const auto bytes = [](const uint8_t* p) {
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(T::kHalves ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
  };
  if constexpr (T::kHalves) {
    const __m256 d = LoadHalf(header + 16 * h);
    return {_mm256_mul_ps(d, bytes(block + 8 * h)), _mm256_mul_ps(d, bytes(block + 16 + 8 * h))};
  } else if constexpr (T::kK) {
    return {_mm256_mul_ps(LoadHalf(header + 16 * h), bytes(block + 8 * h)),
            _mm256_mul_ps(LoadHalf(header + 32 + 16 * h), bytes(block + 16 + 8 * h))};
  } else if constexpr (T::kHasMin) {
    return {LoadHalf(block + 16 * h), LoadHalf(block + 32 + 16 * h)};
  } else {
    return {LoadHalf(block + 16 * h), _mm256_setzero_ps()};
  }
}

template <DType kType>
QUIRE_INLINE void PrefetchBlock(const uint8_t* p) {
  QUIRE_UNROLL(16)
  for (int32_t line = 0; line < Traits<kType>::kBlockBytes; line += 64) Prefetch(p + line);
}

template <int MR>
QUIRE_INLINE void StoreTile(const PanelJob& job, int32_t row, int32_t panel,
                            const __m256 (&f)[MR][2]) {
  QUIRE_UNROLL(4)
  for (int r = 0; r < MR; ++r) {
    float* y = job.y + (row + r) * job.y_stride + 16 * int64_t{panel};
    _mm256_storeu_ps(y, f[r][0]);
    _mm256_storeu_ps(y + 8, f[r][1]);
  }
}

// MR rows x one panel, codes straight from the panel. The tile of the first row prefetches.
template <DType kType, int MR>
void DirectTile(const PanelJob& job, int32_t row, int32_t panel) {
  using T = Traits<kType>;
  const uint8_t* end = job.w + job.panels * job.panel_bytes;
  const uint8_t* record = job.w + panel * job.panel_bytes;
  ActTile acts = ActTileAt(job, row, 0);
  const int32_t records = job.cols / (32 * T::kFormat.blocks_per_record);
  __m256 f[MR][2];
  QUIRE_UNROLL(4)
  for (int r = 0; r < MR; ++r) f[r][0] = f[r][1] = _mm256_setzero_ps();
  for (int32_t n = 0; n < records; ++n, record += T::kRecordBytes) {
    const uint8_t* block = record + T::kFormat.header_bytes;
    for (int32_t s = 0; s < T::kFormat.blocks_per_record;
         ++s, block += T::kBlockBytes, acts.NextBlock()) {
      if (row == 0) PrefetchBlock<kType>(Ahead(job, end, block, kPrefetchBytes));
      const HalfScales k[2] = {LoadScales<kType>(record, block, 0),
                               LoadScales<kType>(record, block, 1)};
      AddBlock<kType, MR>(PackedCodes<kType>{block}, k, acts, f);
    }
  }
  StoreTile<MR>(job, row, panel, f);
}

// Blocks [begin, end) of a panel to bytes and f32 scales.
template <DType kType>
void Unpack(const uint8_t* panel, int32_t begin, int32_t end, uint8_t* out) {
  using T = Traits<kType>;
  for (int32_t b = begin; b < end; ++b, out += kUnpackedBytes) {
    const uint8_t* record = panel + b / T::kFormat.blocks_per_record * int64_t{T::kRecordBytes};
    const uint8_t* block =
        record + T::kFormat.header_bytes + b % T::kFormat.blocks_per_record * T::kBlockBytes;
    auto* scales = reinterpret_cast<float*>(out);
    const PackedCodes<kType> codes{block};
    QUIRE_UNROLL(2)
    for (int h = 0; h < 2; ++h) {
      const HalfScales k = LoadScales<kType>(record, block, h);
      _mm256_store_ps(scales + 8 * h, k.a);
      _mm256_store_ps(scales + 16 + 8 * h, k.b);
      QUIRE_UNROLL(8)
      for (int g = 0; g < 8; ++g) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(out + 128 + 64 * g + 32 * h), codes(g, h));
      }
    }
  }
}

// MR rows x one panel over unpacked blocks [begin, end), continuing from y unless begin is 0. next:
// packed bytes to prefetch meanwhile, or null.
struct SweepPart {
  const uint8_t* unpacked;
  int32_t panel, begin, end;
  const uint8_t* next;
};

template <DType kType, int MR>
void SweepTile(const PanelJob& job, int32_t row, const SweepPart& part) {
  const uint8_t *u = part.unpacked, *next = part.next;
  ActTile acts = ActTileAt(job, row, part.begin);
  __m256 f[MR][2];
  QUIRE_UNROLL(4)
  for (int r = 0; r < MR; ++r) {
    const float* y = job.y + (row + r) * job.y_stride + 16 * int64_t{part.panel};
    f[r][0] = part.begin == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(y);
    f[r][1] = part.begin == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(y + 8);
  }
  for (int32_t b = part.begin; b < part.end; ++b, u += kUnpackedBytes, acts.NextBlock()) {
    if (next != nullptr) {
      PrefetchBlock<kType>(next);
      next += Traits<kType>::kBlockBytes;
    }
    const auto* scales = reinterpret_cast<const float*>(u);
    const HalfScales k[2] = {{_mm256_load_ps(scales), _mm256_load_ps(scales + 16)},
                             {_mm256_load_ps(scales + 8), _mm256_load_ps(scales + 24)}};
    AddBlock<kType, MR>(UnpackedCodes{u + 128}, k, acts, f);
  }
  StoreTile<MR>(job, row, part.panel, f);
}

template <DType kType>
void SweepPanel(const PanelJob& job, int32_t panel, int32_t row_begin, int32_t row_end) {
  const uint8_t* w = job.w + panel * job.panel_bytes;
  const int32_t blocks = job.cols / 32;
  for (int32_t begin = 0; begin < blocks; begin += kChunkBlocks) {
    const int32_t end = blocks - begin < kChunkBlocks ? blocks : begin + kChunkBlocks;
    Unpack<kType>(w, begin, end, job.scratch);
    // The first tile prefetches the same blocks of the next panel.
    const uint8_t* next = Ahead(job, job.w + job.panels * job.panel_bytes,
                                w + begin * int64_t{Traits<kType>::kBlockBytes},
                                static_cast<int32_t>(job.panel_bytes));
    SweepPart part{job.scratch, panel, begin, end, row_begin == 0 ? next : nullptr};
    int32_t row = row_begin;
    for (; row_end - row >= 4; row += 4) {
      SweepTile<kType, 4>(job, row, part);
      part.next = nullptr;
    }
    if (row_end - row == 3) SweepTile<kType, 3>(job, row, part);
    if (row_end - row == 2) SweepTile<kType, 2>(job, row, part);
    if (row_end - row == 1) SweepTile<kType, 1>(job, row, part);
  }
}

template <DType kType>
void DirectPanel(const PanelJob& job, int32_t panel, int32_t row_begin, int32_t row_end) {
  int32_t row = row_begin;
  for (; row_end - row >= 4; row += 4) DirectTile<kType, 4>(job, row, panel);
  if (row_end - row == 3) DirectTile<kType, 3>(job, row, panel);
  if (row_end - row == 2) DirectTile<kType, 2>(job, row, panel);
  if (row_end - row == 1) DirectTile<kType, 1>(job, row, panel);
}

template <DType kType>
void QuantPanels(const PanelJob& job) {
  for (int32_t row = 0; row < job.rows; row += kRowBlock) {
    const int32_t end = job.rows - row < kRowBlock ? job.rows : row + kRowBlock;
    for (int32_t p = 0; p < job.panels; ++p) {
      if (kType != DType::kQ8_0 && end - row >= kSweepRows) {
        if constexpr (kType != DType::kQ8_0) SweepPanel<kType>(job, p, row, end);
      } else {
        DirectPanel<kType>(job, p, row, end);
      }
    }
  }
}

}  // namespace

const LinearKernels kLinearAvx2 = {
    .f32 = &FloatPanels<Avx2, DType::kF32>,
    .f16 = &FloatPanels<Avx2, DType::kF16>,
    .bf16 = &FloatPanels<Avx2, DType::kBF16>,
    .q4_0 = &QuantPanels<DType::kQ4_0>,
    .q4_1 = &QuantPanels<DType::kQ4_1>,
    .q5_0 = &QuantPanels<DType::kQ5_0>,
    .q5_1 = &QuantPanels<DType::kQ5_1>,
    .q8_0 = &QuantPanels<DType::kQ8_0>,
    .q4_k = &QuantPanels<DType::kQ4_K>,
    .q5_k = &QuantPanels<DType::kQ5_K>,
    .q6_k = &QuantPanels<DType::kQ6_K>,
};

}  // namespace quire
