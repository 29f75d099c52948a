// Many rows: panels are unpacked once, in chunks of k, into scratch that stays in L1, and tiles of
// kWideRows rows x kWidePanels panels sweep over them. A broadcast activation serves all panels of
// a tile, so that loads do not bind; a chunk's sums wait in the output for the next chunk, the same
// chain of operations as in a narrow tile. Included by panel_vnni-inl.h.

// Blocks of 32 k that are unpacked at a time; whole records.
inline constexpr int32_t kChunkBlocks = 24;

// One block of a panel, unpacked: scales in f32 and codes as unsigned bytes, [group][row][4 k].
struct UnpackedBlock {
  uint8_t a[64], b[64];
  uint8_t codes[512];
};

// Where a chunk lies: its first block and the number of its blocks.
struct Chunk {
  int32_t first, count;
};

// Unpacks a chunk and asks for the one that lies `ahead` bytes on.
template <class V, DType kType>
void UnpackChunk(const uint8_t* panel, Chunk chunk, int64_t ahead, UnpackedBlock* out) {
  using T = Traits<kType>;
  constexpr int32_t kPerRecord = T::kFormat.blocks_per_record;
  const uint8_t* record = panel + int64_t{chunk.first / kPerRecord} * T::kRecordBytes;
  for (int32_t n = 0; n < chunk.count; n += kPerRecord, record += T::kRecordBytes) {
    const uint8_t* block = record + T::kFormat.header_bytes;
    for (int32_t i = 0; i < kPerRecord; ++i, block += T::kBlockBytes, ++out) {
      for (int32_t line = 0; line < T::kBlockBytes; line += 64) V::Prefetch(block + ahead + line);
      const BlockScales<V> k = LoadScales<V, kType>(record, block);
      V::Store(reinterpret_cast<float*>(out->a), k.a);
      V::Store(reinterpret_cast<float*>(out->b), k.b);
      QUIRE_UNROLL(8)
      for (int g = 0; g < 8; ++g) V::StoreI(out->codes + 64 * g, CodesOfGroup<V, kType>(block, g));
    }
  }
}

// f[r][p] += the block's part of row r and panel p.
template <class V, class Law, int MR, int NP>
QUIRE_INLINE void AddUnpackedBlock(const UnpackedBlock* const (&w)[NP], const ActTile& acts,
                                   typename V::F (&f)[MR][NP]) {
  constexpr int kPasses = Law::kHalves ? 2 : 1, kGroups = 8 / kPasses;
  QUIRE_UNROLL(2)
  for (int pass = 0; pass < kPasses; ++pass) {
    typename V::I s[MR][NP];
    QUIRE_UNROLL(8)
    for (int r = 0; r < MR; ++r) {
      s[r][0] = StartOfSum<V, Law>(*acts.Scale(r), pass);
      QUIRE_UNROLL(4)
      for (int p = 1; p < NP; ++p) s[r][p] = s[r][0];
    }
    QUIRE_UNROLL(8)
    for (int g = kGroups * pass; g < kGroups * (pass + 1); ++g) {
      typename V::I codes[NP];
      QUIRE_UNROLL(4)
      for (int p = 0; p < NP; ++p) codes[p] = V::Load(w[p]->codes + 64 * g);
      QUIRE_UNROLL(8)
      for (int r = 0; r < MR; ++r) {
        const typename V::I x = V::BroadcastBytes(acts.Q(r) + 4 * g);
        QUIRE_UNROLL(4)
        for (int p = 0; p < NP; ++p) s[r][p] = V::Dot(s[r][p], codes[p], x);
      }
    }
    QUIRE_UNROLL(8)
    for (int r = 0; r < MR; ++r) {
      const ActScale* a = acts.Scale(r);
      const typename V::F d = V::BroadcastF(&a->d);
      typename V::F d_sum = d;
      if constexpr (Law::kHasMin) d_sum = V::BroadcastF(&a->d_sum);
      QUIRE_UNROLL(4)
      for (int p = 0; p < NP; ++p) {
        const typename V::F scale = V::LoadF32(pass == 0 ? w[p]->a : w[p]->b);
        f[r][p] = V::Fma(V::ToFloat(s[r][p]), V::Mul(scale, d), f[r][p]);
        if constexpr (Law::kHasMin) f[r][p] = V::Fma(V::LoadF32(w[p]->b), d_sum, f[r][p]);
      }
    }
  }
}

// The rows and panels of a tile, and its chunk of k in scratch: kChunkBlocks blocks per panel.
struct WideWork {
  int32_t row, panel;
  Chunk chunk;
  const UnpackedBlock* blocks;
};

template <class V, class Law, int MR, int NP>
void WideTile(const PanelJob& job, const WideWork& work) {
  typename V::F f[MR][NP];
  float* y = job.y + work.row * job.y_stride + 16 * int64_t{work.panel};
  QUIRE_UNROLL(8)
  for (int r = 0; r < MR; ++r) {
    QUIRE_UNROLL(4)
    for (int p = 0; p < NP; ++p) {
      const float* sum = y + r * job.y_stride + 16 * p;
      f[r][p] =
          work.chunk.first == 0 ? V::ZeroF() : V::LoadF32(reinterpret_cast<const uint8_t*>(sum));
    }
  }
  ActTile acts = ActTileAt(job, work.row, work.chunk.first);
  for (int32_t n = 0; n < work.chunk.count; ++n, acts.NextBlock()) {
    const UnpackedBlock* w[NP];
    QUIRE_UNROLL(4)
    for (int p = 0; p < NP; ++p) w[p] = work.blocks + kChunkBlocks * p + n;
    AddUnpackedBlock<V, Law, MR, NP>(w, acts, f);
  }
  QUIRE_UNROLL(8)
  for (int r = 0; r < MR; ++r) {
    QUIRE_UNROLL(4)
    for (int p = 0; p < NP; ++p) V::Store(y + r * job.y_stride + 16 * p, f[r][p]);
  }
}

// All rows over the panels of a tile, from `panel` on.
template <class V, DType kType>
void WideGroup(const PanelJob& job, int32_t panel) {
  using Law = typename Traits<kType>::Law;
  constexpr int kRows = V::kWideRows, NP = V::kWidePanels;
  auto* blocks = reinterpret_cast<UnpackedBlock*>(job.scratch);
  const uint8_t* w = job.w + panel * job.panel_bytes;
  const uint8_t* end = job.w + job.panels * job.panel_bytes;
  const int64_t ahead = Ahead(job, end, w, static_cast<int32_t>(NP * job.panel_bytes)) - w;
  const int32_t tiles = (job.rows + kRows - 1) / kRows, count = job.cols / 32;
  for (int32_t first = 0; first < count; first += kChunkBlocks) {
    const Chunk chunk = {first, count - first < kChunkBlocks ? count - first : kChunkBlocks};
    for (int p = 0; p < NP; ++p)
      UnpackChunk<V, kType>(w + p * job.panel_bytes, chunk, ahead, blocks + kChunkBlocks * p);
    for (int32_t t = 0; t < tiles; ++t) {
      const int32_t row = TileRow(job.rows, t, tiles);
      const WideWork work = {row, panel, chunk, blocks};
      if (TileRow(job.rows, t + 1, tiles) - row == kRows) {
        WideTile<V, Law, kRows, NP>(job, work);
      } else {
        WideTile<V, Law, kRows - 1, NP>(job, work);
      }
    }
  }
}

// The first `panels` panels, a multiple of kWidePanels, for V::kWideFrom rows or more: fewer do not
// pay for the unpacking.
template <class V, DType kType>
void WidePanels(const PanelJob& job, int32_t panels) {
  static_assert(sizeof(UnpackedBlock) * kChunkBlocks * V::kWidePanels <= kPanelScratchBytes);
  // From so many rows on, tiles of kWideRows and of one row less make up any number.
  static_assert(V::kWideFrom >= (V::kWideRows - 1) * (V::kWideRows - 1));
  static_assert(kChunkBlocks % Traits<kType>::kFormat.blocks_per_record == 0);
  for (int32_t panel = 0; panel < panels; panel += V::kWidePanels) WideGroup<V, kType>(job, panel);
}
