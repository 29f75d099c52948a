// Float panel kernels over a vector shim V of 16 f32 lanes: one fused multiply-add chain per output
// in ascending k, the order of oneDNN's f32 ukernel. A tile is MR rows x NP panels, enough
// independent chains to hide the latency of the fused multiply-add. Included by one .cc per shim,
// inside an anonymous namespace.

template <class V, DType kType>
QUIRE_INLINE typename V::F LoadWeights(const uint8_t* panel, int32_t k) {
  if constexpr (kType == DType::kF32) {
    return V::LoadF32(panel + 64 * int64_t{k});
  } else if constexpr (kType == DType::kF16) {
    return V::LoadHalf(panel + 32 * int64_t{k});
  } else {
    return V::LoadBf16(panel + 32 * int64_t{k});
  }
}

template <class V, DType kType, int MR, int NP>
void FloatTile(const PanelJob& job, int32_t row, int32_t panel) {
  const uint8_t* w = job.w + panel * job.panel_bytes;
  const float* x = job.x + row * job.x_stride;
  typename V::F f[MR][NP];
  QUIRE_UNROLL(8)
  for (int r = 0; r < MR; ++r) {
    QUIRE_UNROLL(8)
    for (int p = 0; p < NP; ++p) f[r][p] = V::ZeroF();
  }
  for (int32_t k = 0; k < job.cols; ++k) {
    typename V::F wk[NP];
    QUIRE_UNROLL(8)
    for (int p = 0; p < NP; ++p) wk[p] = LoadWeights<V, kType>(w + p * job.panel_bytes, k);
    QUIRE_UNROLL(8)
    for (int r = 0; r < MR; ++r) {
      QUIRE_UNROLL(8)
      for (int p = 0; p < NP; ++p)
        f[r][p] = V::FmaBroadcast(wk[p], x + r * job.x_stride + k, f[r][p]);
    }
  }
  QUIRE_UNROLL(8)
  for (int r = 0; r < MR; ++r) {
    QUIRE_UNROLL(8)
    for (int p = 0; p < NP; ++p)
      V::Store(job.y + (row + r) * job.y_stride + 16 * int64_t{panel + p}, f[r][p]);
  }
}

template <class V, DType kType, int NP, int... kRows>
void FloatRows(const PanelJob& job, int32_t panel, Rows<kRows...>) {
  using Tile = void (*)(const PanelJob&, int32_t, int32_t);
  static constexpr Tile kTiles[] = {&FloatTile<V, kType, kRows + 1, NP>...};
  const int32_t tiles = (job.rows + V::kFloatRows - 1) / V::kFloatRows;
  for (int32_t t = 0; t < tiles; ++t) {
    const int32_t first = TileRow(job.rows, t, tiles), last = TileRow(job.rows, t + 1, tiles);
    kTiles[last - first - 1](job, first, panel);
  }
}

template <class V, DType kType>
void FloatPanels(const PanelJob& job) {
  int32_t p = 0;
  if (job.rows == 1) {
    for (; job.panels - p >= V::kFloatLonePanels; p += V::kFloatLonePanels) {
      FloatTile<V, kType, 1, V::kFloatLonePanels>(job, 0, p);
    }
  }
  const RowsUpTo<V::kFloatRows> rows;
  for (; job.panels - p >= V::kFloatPanels; p += V::kFloatPanels)
    FloatRows<V, kType, V::kFloatPanels>(job, p, rows);
  for (; p < job.panels; ++p) FloatRows<V, kType, 1>(job, p, rows);
}
