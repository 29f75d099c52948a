// What the kernels know about a quantised type at compile time. Included inside an anonymous namespace.

template <DType kType>
struct Traits {
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  static constexpr int32_t kBlockBytes = kFormat.BlockBytes();
  static constexpr int32_t kRecordBytes = kFormat.RecordBytes();
  static constexpr bool kK = kFormat.blocks_per_record == 8;
  static constexpr bool kHasMin =
      kType == DType::kQ4_1 || kType == DType::kQ5_1 || kType == DType::kQ4_K || kType == DType::kQ5_K;
  static constexpr bool kHalves = kType == DType::kQ6_K;  // one scale per 16 k
  // Codes are stored plus 2^shift; the sum is put right by -2^shift * sum(a).
  static constexpr int kOffsetShift = kType == DType::kQ4_0   ? 3
                                      : kType == DType::kQ5_0 ? 4
                                      : kType == DType::kQ6_K ? 5
                                      : kType == DType::kQ8_0 ? 7
                                                              : -1;
};
