// Quantised panel kernels for machines with a u8 x s8 dot product into 32-bit lanes, written over a
// vector shim V of 16 lanes: AVX-512 VNNI, and plain arrays (the scalar level, which lets this code
// run anywhere). Included by one .cc per shim, inside an anonymous namespace, so that no symbol is
// shared between instruction sets.
//
// A tile is MR activation rows x one panel: each group of codes is unpacked once and swept over the
// rows, whose 4-byte groups come as broadcast memory operands. One tile streams the panels, reading
// kPrefetchBytes ahead into L2. Several tiles take turns on groups of panels that stay in L2, and
// together prefetch the next group. Many rows: see panel_wide-inl.h.

inline constexpr int64_t kGroupBytes = 32 * 1024;
inline constexpr int32_t kPrefetchBytes = 8192;

// Scales of one block: f32 of 16 rows. b is unused unless the type has a minimum or 16-k scales.
template <class V>
struct BlockScales {
  typename V::F a, b;
};

template <class V, DType kType>
QUIRE_INLINE BlockScales<V> LoadScales(const uint8_t* header, const uint8_t* block) {
  using T = Traits<kType>;
  if constexpr (T::kHalves) {
    const typename V::F d = V::LoadHalf(header);
    return {V::Mul(d, V::LoadS8(block)), V::Mul(d, V::LoadS8(block + 16))};
  } else if constexpr (T::kK) {
    return {V::Mul(V::LoadHalf(header), V::LoadU8(block)),
            V::Mul(V::LoadHalf(header + 32), V::LoadU8(block + 16))};
  } else if constexpr (T::kHasMin) {
    return {V::LoadHalf(block), V::LoadHalf(block + 32)};
  } else {
    return {V::LoadHalf(block), V::ZeroF()};
  }
}

// Group g of a block as unsigned bytes.
template <class V, DType kType>
QUIRE_INLINE typename V::I CodesOfGroup(const uint8_t* block, int g) {
  using T = Traits<kType>;
  const uint8_t* plane = block + T::kFormat.scale_bytes;
  const uint8_t* quants = plane + T::kFormat.plane_bytes;
  if constexpr (kType == DType::kQ8_0) {
    return V::Xor(V::Load(quants + 64 * g), V::SetByte(0x80));
  } else {
    typename V::I code = V::Load(quants + 64 * (g % 4));
    code = V::And(g < 4 ? code : V::ShiftRight(code, 4), V::SetByte(0x0f));
    if constexpr (T::kFormat.plane_bytes == 64) {  // bit g to bit 4
      const typename V::I bits = V::Load(plane);
      code = V::OrAnd(code, g <= 4 ? V::ShiftLeft(bits, 4 - g) : V::ShiftRight(bits, g - 4),
                      V::SetByte(0x10));
    }
    if constexpr (T::kFormat.plane_bytes == 128) {  // bits 2 (g mod 4) to bit 4
      const typename V::I bits = V::Load(plane + 64 * (g / 4));
      const int at = 2 * (g % 4);
      code = V::OrAnd(code, at <= 4 ? V::ShiftLeft(bits, 4 - at) : V::ShiftRight(bits, at - 4),
                      V::SetByte(0x30));
    }
    return code;
  }
}

// What the sum of codes times activations starts from, in pass 1 for the second half of a block.
template <class V, class Law>
QUIRE_INLINE typename V::I StartOfSum(const ActScale& a, int pass) {
  if constexpr (Law::kHalves) {
    const typename V::I low = V::template Broadcast<Law::kOffsetShift>(&a.neg_sum_lo);
    if (pass == 0) return low;
    return V::Sub(V::template Broadcast<Law::kOffsetShift>(&a.neg_sum), low);
  } else if constexpr (Law::kOffsetShift >= 0) {
    return V::template Broadcast<Law::kOffsetShift>(&a.neg_sum);
  } else {
    return V::ZeroI();
  }
}

// f[r] += the block's part of row r. Rows are the inner loop: their sums are the independent chains
// that hide the latency of the dot product.
template <class V, DType kType, int MR>
QUIRE_INLINE void AddBlock(const uint8_t* block, const BlockScales<V>& k, const ActTile& acts,
                           typename V::F (&f)[MR]) {
  using T = Traits<kType>;
  constexpr int kPasses = T::kHalves ? 2 : 1, kGroups = 8 / kPasses;
  QUIRE_UNROLL(2)
  for (int pass = 0; pass < kPasses; ++pass) {
    typename V::I s[MR];
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r) s[r] = StartOfSum<V, typename T::Law>(*acts.Scale(r), pass);
    QUIRE_UNROLL(8)
    for (int i = 0; i < kGroups; ++i) {
      // Groups g and g + 4 share their nibble line.
      const int g = T::kHalves ? 4 * pass + i : i / 2 + 4 * (i % 2);
      const typename V::I w = CodesOfGroup<V, kType>(block, g);
      QUIRE_UNROLL(16)
      for (int r = 0; r < MR; ++r) s[r] = V::Dot(s[r], w, acts.Q(r) + 4 * g);
    }
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r) {
      const ActScale* a = acts.Scale(r);
      f[r] = V::Fma(V::ToFloat(s[r]), V::MulBroadcast(pass == 0 ? k.a : k.b, &a->d), f[r]);
      if constexpr (T::kHasMin) f[r] = V::FmaBroadcast(k.b, &a->d_sum, f[r]);
    }
  }
}

// A tile's share of the work, and of the prefetching: of what lies `distance` bytes further on, in
// every block the lines from byte `line` on in steps of line_step.
struct TileWork {
  int32_t row, panel_begin, panel_end;
  int32_t distance;
  int64_t line, line_step;
};

template <class V, DType kType, int MR>
void RowTile(const PanelJob& job, const TileWork& work) {
  using T = Traits<kType>;
  const int32_t records = job.cols / (32 * T::kFormat.blocks_per_record);
  const uint8_t* end = job.w + job.panels * job.panel_bytes;
  for (int32_t p = work.panel_begin; p < work.panel_end; ++p) {
    const uint8_t* record = job.w + p * job.panel_bytes;
    const int64_t ahead = Ahead(job, end, record, work.distance) - record;
    ActTile acts = ActTileAt(job, work.row, 0);
    typename V::F f[MR];
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r) f[r] = V::ZeroF();
    for (int32_t n = 0; n < records; ++n, record += T::kRecordBytes) {
      const uint8_t* block = record + T::kFormat.header_bytes;
      for (int32_t s = 0; s < T::kFormat.blocks_per_record;
           ++s, block += T::kBlockBytes, acts.NextBlock()) {
        for (int64_t line = work.line; line < T::kBlockBytes; line += work.line_step)
          V::Prefetch(block + ahead + line);
        const BlockScales<V> k = LoadScales<V, kType>(record, block);
        AddBlock<V, kType, MR>(block, k, acts, f);
      }
    }
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r)
      V::Store(job.y + (work.row + r) * job.y_stride + 16 * int64_t{p}, f[r]);
  }
}

#include "runtime/kernels/panel_wide-inl.h"

using TileFn = void (*)(const PanelJob&, const TileWork&);

template <class V, DType kType, int... kRows>
TileFn TileOf(int32_t rows, Rows<kRows...>) {
  static constexpr TileFn kTiles[] = {&RowTile<V, kType, kRows + 1>...};
  return kTiles[rows - 1];
}

template <class V, DType kType>
void NarrowPanels(const PanelJob& job) {
  const int32_t tiles = (job.rows + V::kTileRows - 1) / V::kTileRows;
  int32_t group = tiles == 1 ? job.panels : static_cast<int32_t>(kGroupBytes / job.panel_bytes);
  if (group < 1) group = 1;
  const int32_t distance =
      tiles == 1 ? kPrefetchBytes : static_cast<int32_t>(group * job.panel_bytes);
  for (int32_t p = 0; p < job.panels; p += group) {
    const int32_t end = job.panels - p < group ? job.panels : p + group;
    for (int32_t t = 0; t < tiles; ++t) {
      const int32_t first = TileRow(job.rows, t, tiles), last = TileRow(job.rows, t + 1, tiles);
      const TileWork work{first, p, end, distance, int64_t{64} * t, int64_t{64} * tiles};
      TileOf<V, kType>(last - first, RowsUpTo<V::kTileRows>{})(job, work);
    }
  }
}

template <class V, DType kType>
void QuantPanels(const PanelJob& job) {
  const int32_t wide = job.rows < V::kWideFrom ? 0 : job.panels / V::kWidePanels * V::kWidePanels;
  if (wide > 0) WidePanels<V, kType>(job, wide);
  if (wide == job.panels) return;
  PanelJob rest = job;
  rest.w += wide * job.panel_bytes;
  rest.y += 16 * int64_t{wide};
  rest.panels -= wide;
  NarrowPanels<V, kType>(rest);
}
