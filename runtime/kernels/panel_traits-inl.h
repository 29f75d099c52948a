// What the panel kernels share: knowledge of the quantised types at compile time, row tiles,
// prefetch addresses. Included inside an anonymous namespace.

// How the sums of a block become a result.
template <bool kMin, bool kHalf, int kShift>
struct EpilogueLaw {
  static constexpr bool kHasMin = kMin;   // scale b adds b * (scaled sum of the activations)
  static constexpr bool kHalves = kHalf;  // scale a serves 16 k, b the other 16
  // Codes are stored plus 2^shift; the sum is put right by -2^shift * sum(a). -1: they are not.
  static constexpr int kOffsetShift = kShift;
};

template <DType kType>
struct Traits {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  static constexpr int32_t kBlockBytes = kFormat.BlockBytes();
  static constexpr int32_t kRecordBytes = kFormat.RecordBytes();
  static constexpr bool kK = kFormat.blocks_per_record == 8;
  static constexpr bool kHasMin = kType == DType::kQ4_1 || kType == DType::kQ5_1 ||
                                  kType == DType::kQ4_K || kType == DType::kQ5_K;
  static constexpr bool kHalves = kType == DType::kQ6_K;  // one scale per 16 k
  static constexpr int kOffsetShift = kType == DType::kQ4_0   ? 3
                                      : kType == DType::kQ5_0 ? 4
                                      : kType == DType::kQ6_K ? 5
                                      : kType == DType::kQ8_0 ? 7
                                                              : -1;
  using Law = EpilogueLaw<kHasMin, kHalves, kOffsetShift>;
};

// Where the activations of a tile's rows are at some block of 32 k.
struct ActTile {
  const int8_t* q;
  int64_t q_stride;
  const ActScale* scales;
  int64_t scale_stride;

  QUIRE_INLINE const int8_t* Q(int r) const { return q + r * q_stride; }
  QUIRE_INLINE const ActScale* Scale(int r) const { return scales + r * scale_stride; }
  QUIRE_INLINE void NextBlock() {
    q += 32;
    ++scales;
  }
};

QUIRE_INLINE ActTile ActTileAt(const PanelJob& job, int32_t row, int32_t block) {
  return {job.q + row * job.q_stride + 32 * block, job.q_stride,
          job.scales + row * job.scale_stride + block, job.scale_stride};
}

template <int... kRows>
struct Rows {};
// RowsUpTo<n> is Rows<0, 1, .., n - 1>; std::integer_sequence is not for these units.
template <int n, int... kRows>
struct MakeRows : MakeRows<n - 1, n - 1, kRows...> {};
template <int... kRows>
struct MakeRows<0, kRows...> {
  using type = Rows<kRows...>;
};
template <int n>
using RowsUpTo = typename MakeRows<n>::type;

// First row of tile t of `tiles` nearly equal ones: 17 rows in two tiles are 8 + 9, not 12 + 5.
QUIRE_INLINE int32_t TileRow(int32_t rows, int32_t t, int32_t tiles) {
  return static_cast<int32_t>(int64_t{rows} * t / tiles);
}

// The address to prefetch from when `at` is read. Past the last panel it is what the job says comes
// next.
QUIRE_INLINE const uint8_t* Ahead(const PanelJob& job, const uint8_t* end, const uint8_t* at,
                                  int32_t distance) {
  const uint8_t* ahead = at + distance;
  return ahead < end || job.next == nullptr ? ahead : job.next + (ahead - end);
}
