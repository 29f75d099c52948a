// Quantised panel kernels for machines with a u8 x s8 dot product into 32-bit lanes, written over a vector shim V
// of 16 lanes: AVX-512 VNNI, and plain arrays (the scalar level, which lets this code run anywhere). Included by
// one .cc per shim, inside an anonymous namespace, so that no symbol is shared between instruction sets.
//
// A tile is MR activation rows x one panel: the 8 code registers of a block are unpacked once and swept over the
// rows, whose 4-byte groups come as broadcast memory operands. Row tiles are outer, panels inner, within groups of
// panels that stay in L2: the tile's activations stay in L1.

inline constexpr int64_t kGroupBytes = 160 * 1024;   // panels of a group
inline constexpr int32_t kPrefetchBytes = 2048;      // ahead in the weights

template <int... kRows>
struct Rows {};
// Rows<0, 1, .., n - 1>, by a compiler builtin: std::integer_sequence is not for these units.
template <int n>
using RowsUpTo = Rows<__integer_pack(n)...>;

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
    return {V::Mul(V::LoadHalf(header), V::LoadU8(block)), V::Mul(V::LoadHalf(header + 32), V::LoadU8(block + 16))};
  } else if constexpr (T::kHasMin) {
    return {V::LoadHalf(block), V::LoadHalf(block + 32)};
  } else {
    return {V::LoadHalf(block), V::ZeroF()};
  }
}

// The 8 groups of a block as unsigned bytes.
template <class V, DType kType>
QUIRE_INLINE void LoadCodes(const uint8_t* block, typename V::I (&w)[8]) {
  using T = Traits<kType>;
  const uint8_t* plane = block + T::kFormat.scale_bytes;
  const uint8_t* quants = plane + T::kFormat.plane_bytes;
  if constexpr (kType == DType::kQ8_0) {
    const typename V::I flip = V::SetByte(0x80);
    QUIRE_UNROLL(8)
    for (int g = 0; g < 8; ++g) w[g] = V::Xor(V::Load(quants + 64 * g), flip);
    return;
  } else {
    const typename V::I low = V::SetByte(0x0f);
    QUIRE_UNROLL(4)
    for (int g = 0; g < 4; ++g) {
      const typename V::I line = V::Load(quants + 64 * g);
      w[g] = V::And(line, low);
      w[g + 4] = V::And(V::template ShiftRight<4>(line), low);
    }
    if constexpr (T::kFormat.plane_bytes == 64) {
      const typename V::I bits = V::Load(plane), mask = V::SetByte(0x10);
      w[0] = V::OrAnd(w[0], V::template ShiftLeft<4>(bits), mask);
      w[1] = V::OrAnd(w[1], V::template ShiftLeft<3>(bits), mask);
      w[2] = V::OrAnd(w[2], V::template ShiftLeft<2>(bits), mask);
      w[3] = V::OrAnd(w[3], V::template ShiftLeft<1>(bits), mask);
      w[4] = V::OrAnd(w[4], bits, mask);
      w[5] = V::OrAnd(w[5], V::template ShiftRight<1>(bits), mask);
      w[6] = V::OrAnd(w[6], V::template ShiftRight<2>(bits), mask);
      w[7] = V::OrAnd(w[7], V::template ShiftRight<3>(bits), mask);
    }
    if constexpr (T::kFormat.plane_bytes == 128) {
      const typename V::I mask = V::SetByte(0x30);
      QUIRE_UNROLL(2)
      for (int h = 0; h < 2; ++h) {
        const typename V::I bits = V::Load(plane + 64 * h);
        w[4 * h] = V::OrAnd(w[4 * h], V::template ShiftLeft<4>(bits), mask);
        w[4 * h + 1] = V::OrAnd(w[4 * h + 1], V::template ShiftLeft<2>(bits), mask);
        w[4 * h + 2] = V::OrAnd(w[4 * h + 2], bits, mask);
        w[4 * h + 3] = V::OrAnd(w[4 * h + 3], V::template ShiftRight<2>(bits), mask);
      }
    }
  }
}

// f += the block's part of one row.
template <class V, DType kType>
QUIRE_INLINE typename V::F AddBlock(typename V::F f, const typename V::I (&w)[8], const BlockScales<V>& k,
                                    const int8_t* q, const ActScale* a) {
  using T = Traits<kType>;
  if constexpr (T::kHalves) {
    typename V::I lo = V::template Broadcast<T::kOffsetShift>(&a->neg_sum_lo);
    typename V::I hi = V::Sub(V::template Broadcast<T::kOffsetShift>(&a->neg_sum), lo);
    QUIRE_UNROLL(4)
    for (int g = 0; g < 4; ++g) {
      lo = V::Dot(lo, w[g], q + 4 * g);
      hi = V::Dot(hi, w[g + 4], q + 16 + 4 * g);
    }
    f = V::Fma(V::ToFloat(lo), V::MulBroadcast(k.a, &a->d), f);
    return V::Fma(V::ToFloat(hi), V::MulBroadcast(k.b, &a->d), f);
  } else {
    typename V::I s;
    if constexpr (T::kOffsetShift >= 0) {
      s = V::template Broadcast<T::kOffsetShift>(&a->neg_sum);
    } else {
      s = V::ZeroI();
    }
    QUIRE_UNROLL(8)
    for (int g = 0; g < 8; ++g) s = V::Dot(s, w[g], q + 4 * g);
    f = V::Fma(V::ToFloat(s), V::MulBroadcast(k.a, &a->d), f);
    if constexpr (T::kHasMin) f = V::FmaBroadcast(k.b, &a->d_sum, f);
    return f;
  }
}

template <class V, DType kType, int MR>
void RowTile(const PanelJob& job, int32_t row, int32_t panel_begin, int32_t panel_end) {
  using T = Traits<kType>;
  const int32_t records = job.cols / (32 * T::kFormat.blocks_per_record);
  for (int32_t p = panel_begin; p < panel_end; ++p) {
    const uint8_t* record = job.w + p * job.panel_bytes;
    const int8_t* q = job.q + row * job.q_stride;
    const ActScale* a = job.scales + row * job.scale_stride;
    typename V::F f[MR];
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r) f[r] = V::ZeroF();
    for (int32_t n = 0; n < records; ++n, record += T::kRecordBytes) {
      const uint8_t* block = record + T::kFormat.header_bytes;
      for (int32_t s = 0; s < T::kFormat.blocks_per_record; ++s, block += T::kBlockBytes, q += 32, ++a) {
        QUIRE_UNROLL(16)
        for (int32_t line = 0; line < T::kBlockBytes; line += 64) V::Prefetch(block + kPrefetchBytes + line);
        typename V::I w[8];
        LoadCodes<V, kType>(block, w);
        const BlockScales<V> k = LoadScales<V, kType>(record, block);
        QUIRE_UNROLL(16)
        for (int r = 0; r < MR; ++r) {
          f[r] = AddBlock<V, kType>(f[r], w, k, q + r * job.q_stride, a + r * job.scale_stride);
        }
      }
    }
    QUIRE_UNROLL(16)
    for (int r = 0; r < MR; ++r) V::Store(job.y + (row + r) * job.y_stride + 16 * int64_t{p}, f[r]);
  }
}

template <class V, DType kType>
using TileFn = void (*)(const PanelJob&, int32_t, int32_t, int32_t);

template <class V, DType kType, int... kRows>
TileFn<V, kType> TileOf(int32_t rows, Rows<kRows...>) {
  static constexpr TileFn<V, kType> kTiles[] = {&RowTile<V, kType, kRows + 1>...};
  return kTiles[rows - 1];
}

template <class V, DType kType>
void QuantPanels(const PanelJob& job) {
  int32_t group = static_cast<int32_t>(kGroupBytes / job.panel_bytes);
  if (group < 1) group = 1;
  // Row tiles of nearly equal height: 17 rows are 9 + 8, not 16 + 1.
  const int32_t tiles = (job.rows + V::kTileRows - 1) / V::kTileRows;
  for (int32_t p = 0; p < job.panels; p += group) {
    const int32_t end = job.panels - p < group ? job.panels : p + group;
    for (int32_t t = 0; t < tiles; ++t) {
      const int32_t first = job.rows * t / tiles, last = job.rows * (t + 1) / tiles;
      TileOf<V, kType>(last - first, RowsUpTo<V::kTileRows>{})(job, first, p, end);
    }
  }
}
