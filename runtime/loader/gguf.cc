#include "runtime/loader/gguf.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/absl_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/byte_cursor.h"

namespace quire {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kSmallestKey = 14;    // length, one byte of name, type, one byte of value
// Length, one byte of name, dim count, one dim, type, offset.
constexpr uint64_t kSmallestTensor = 33;
constexpr uint64_t kMaxElementBytes = 8;

// Bytes of a scalar in the file; 0 for strings and arrays.
uint64_t ScalarBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return kMaxElementBytes;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

absl::StatusOr<GgufType> ReadType(ByteCursor& in) {
  const uint64_t at = in.offset();
  ASSIGN_OR_RETURN(const uint32_t type, in.Read<uint32_t>());
  if (type > static_cast<uint32_t>(GgufType::kF64)) {
    return in.ErrorAt(at, absl::StrCat("found value type ", type, ", expected 0 to 12"));
  }
  return GgufType{type};
}

absl::StatusOr<uint64_t> ReadScalarBits(ByteCursor& in, GgufType type) {
  if (type == GgufType::kBool) return in.ReadBool();
  switch (ScalarBytes(type)) {
    case 1:
      return in.Read<uint8_t>();
    case 2:
      return in.Read<uint16_t>();
    case 4:
      return in.Read<uint32_t>();
    default:
      return in.Read<uint64_t>();
  }
}

absl::Status SkipArray(ByteCursor& in, GgufValue& value) {
  ASSIGN_OR_RETURN(value.element, ReadType(in));
  if (value.element == GgufType::kArray)
    return in.Error("found an array of arrays, expected depth 1");
  const uint64_t at = in.offset();
  ASSIGN_OR_RETURN(value.count, in.Read<uint64_t>());
  value.begin = in.offset();
  const uint64_t size = value.element == GgufType::kString ? 8 : ScalarBytes(value.element);
  const std::optional<uint64_t> bytes = CheckedMul(value.count, size);
  if (!bytes || *bytes > in.remaining()) {
    return in.ErrorAt(at, absl::StrCat("truncated: found array count ", value.count, " of ", size,
                                       " bytes or more each, ", in.remaining(), " bytes remain"));
  }
  if (value.count > kMaxGgufArrayCount) {
    return in.ErrorAt(at, absl::StrCat("found array count ", value.count, ", expected at most ",
                                       kMaxGgufArrayCount));
  }
  if (value.element == GgufType::kString) {
    for (uint64_t i = 0; i < value.count; ++i) RETURN_IF_ERROR(in.SkipString(kMaxGgufStringBytes));
    return absl::OkStatus();
  }
  if (value.element == GgufType::kBool) {
    for (uint64_t i = 0; i < value.count; ++i) RETURN_IF_ERROR(in.ReadBool().status());
    return absl::OkStatus();
  }
  return in.Skip(*bytes);
}

absl::StatusOr<GgufValue> ReadValue(ByteCursor& in) {
  GgufValue value;
  ASSIGN_OR_RETURN(value.type, ReadType(in));
  value.begin = in.offset();
  value.count = 1;
  if (value.type == GgufType::kArray) {
    RETURN_IF_ERROR(SkipArray(in, value));
  } else if (value.type == GgufType::kString) {
    RETURN_IF_ERROR(in.SkipString(kMaxGgufStringBytes));
  } else {
    ASSIGN_OR_RETURN(value.bits, ReadScalarBits(in, value.type));
  }
  value.end = in.offset();
  return value;
}

// A key's or tensor's name: 1..max_bytes bytes.
absl::StatusOr<std::string> ReadName(ByteCursor& in, uint64_t max_bytes) {
  const uint64_t at = in.offset();
  ASSIGN_OR_RETURN(std::string name, in.ReadString(max_bytes));
  if (name.empty()) return in.ErrorAt(at, "found an empty name");
  return name;
}

absl::Status ReadKeys(ByteCursor& in, uint64_t count, GgufHeader& header) {
  header.keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    in.SetContext(absl::StrCat("name of key ", i));
    const uint64_t at = in.offset();
    ASSIGN_OR_RETURN(std::string key, ReadName(in, kMaxGgufKeyBytes));
    in.SetContext(absl::StrCat("key ", Printable(key)));
    if (!header.key_index.emplace(key, i).second)
      return in.ErrorAt(at, "found twice, expected once");
    ASSIGN_OR_RETURN(const GgufValue value, ReadValue(in));
    header.keys.emplace_back(std::move(key), value);
  }
  return absl::OkStatus();
}

absl::Status ReadAlignment(const ByteCursor& in, GgufHeader& header) {
  const GgufValue* value = header.FindKey("general.alignment");
  if (value == nullptr) return absl::OkStatus();
  if (value->type != GgufType::kU32) {
    return in.ErrorAt(value->begin,
                      absl::StrCat("found type ", View(NameOf(value->type)), ", expected UINT32"));
  }
  if (!std::has_single_bit(value->bits) || value->bits > kMaxGgufAlignment) {
    return in.ErrorAt(
        value->begin,
        absl::StrCat("found ", value->bits, ", expected a power of two up to ", kMaxGgufAlignment));
  }
  header.alignment = value->bits;
  return absl::OkStatus();
}

absl::Status ReadTensorType(ByteCursor& in, GgufTensor& tensor) {
  const uint64_t at = in.offset();
  ASSIGN_OR_RETURN(const uint32_t id, in.Read<uint32_t>());
  const DTypeTraits* traits = FindDType(id);
  if (traits == nullptr) {
    const auto name = [](std::string* out, const DTypeTraits& t) {
      absl::StrAppend(out, View(t.name));
    };
    return in.ErrorAt(at, absl::StrCat("found tensor type ", id,
                                       ", supported: ", absl::StrJoin(kDTypes, " ", name)));
  }
  tensor.type = traits->type;
  const auto block = static_cast<uint64_t>(traits->block_elements);
  if (tensor.dims[0] % block != 0) {
    return in.ErrorAt(
        at, absl::StrCat("found rows of ", tensor.dims[0], " elements, expected a multiple of ",
                         block, " for ", View(traits->name)));
  }
  std::optional<uint64_t> elements = 1;
  for (const uint64_t dim : tensor.dims)
    elements = elements ? CheckedMul(*elements, dim) : std::nullopt;
  const std::optional<uint64_t> bytes =
      elements ? CheckedMul(*elements / block, static_cast<uint64_t>(traits->block_bytes))
               : std::nullopt;
  if (!bytes)
    return in.ErrorAt(at, absl::StrCat("the size of shape ", ShapeText(tensor), " overflows"));
  tensor.bytes = *bytes;
  return absl::OkStatus();
}

// Reads one record of the tensor table; `next` is the offset in the data that it must have.
absl::StatusOr<GgufTensor> ReadTensor(ByteCursor& in, uint64_t index, uint64_t next) {
  GgufTensor tensor;
  in.SetContext(absl::StrCat("name of tensor ", index));
  ASSIGN_OR_RETURN(tensor.name, ReadName(in, kMaxGgufNameBytes));
  in.SetContext(absl::StrCat("tensor ", Printable(tensor.name)));
  uint64_t at = in.offset();
  ASSIGN_OR_RETURN(const uint32_t dim_count, in.Read<uint32_t>());
  if (dim_count < 1 || dim_count > 4) {
    return in.ErrorAt(at, absl::StrCat("found ", dim_count, " dimensions, expected 1 to 4"));
  }
  tensor.dim_count = static_cast<int32_t>(dim_count);
  for (uint32_t d = 0; d < dim_count; ++d) {
    at = in.offset();
    ASSIGN_OR_RETURN(tensor.dims[d], in.Read<uint64_t>());
    if (tensor.dims[d] > INT64_MAX) {
      return in.ErrorAt(
          at, absl::StrCat("found dimension ", tensor.dims[d], ", expected less than 2^63"));
    }
  }
  RETURN_IF_ERROR(ReadTensorType(in, tensor));
  at = in.offset();
  ASSIGN_OR_RETURN(tensor.begin, in.Read<uint64_t>());
  if (tensor.begin != next) {
    return in.ErrorAt(at, absl::StrCat("found data offset ", tensor.begin, ", expected ", next));
  }
  return tensor;
}

absl::Status ReadTensors(ByteCursor& in, uint64_t count, GgufHeader& header) {
  header.tensors.reserve(count);
  uint64_t next = 0;  // offset in the data; always aligned
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = in.offset();
    ASSIGN_OR_RETURN(GgufTensor tensor, ReadTensor(in, i, next));
    if (!header.tensor_index.emplace(tensor.name, i).second)
      return in.ErrorAt(at, "found twice, expected once");
    const std::optional<uint64_t> end = CheckedAdd(next, tensor.bytes);
    const std::optional<uint64_t> aligned =
        end ? CheckedAlignUp(*end, header.alignment) : std::nullopt;
    if (!aligned) return in.ErrorAt(at, "the total size of the tensors overflows");
    next = *aligned;
    header.tensors.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

// Turns offsets in the data into offsets in the file and checks them against its size.
absl::Status PlaceTensors(const ByteCursor& in, const ModelFile& file, GgufHeader& header) {
  const std::optional<uint64_t> begin = CheckedAlignUp(in.offset(), header.alignment);
  header.data_begin = header.data_end = begin.value_or(UINT64_MAX);
  for (GgufTensor& tensor : header.tensors) {
    const std::optional<uint64_t> at = CheckedAdd(header.data_begin, tensor.begin);
    const std::optional<uint64_t> end = at ? CheckedAdd(*at, tensor.bytes) : std::nullopt;
    if (!end || *end > file.size()) {
      return file.Error(absl::StrCat("truncated at ", file.size(), ": tensor ",
                                     Printable(tensor.name), " has ", tensor.bytes,
                                     " bytes at offset ", at.value_or(UINT64_MAX)));
    }
    tensor.begin = *at;
    header.data_end = *end;
  }
  return absl::OkStatus();
}

absl::Status CheckCount(ByteCursor& in, uint64_t at, uint64_t count, uint64_t most,
                        uint64_t smallest) {
  if (count > in.remaining() / smallest) {
    return in.ErrorAt(at,
                      absl::StrCat("truncated: found ", count, ", but the ", in.remaining(),
                                   " bytes that remain hold at most ", in.remaining() / smallest));
  }
  if (count > most)
    return in.ErrorAt(at, absl::StrCat("found ", count, ", expected at most ", most));
  return absl::OkStatus();
}

absl::Status ReadPreamble(ByteCursor& in, GgufHeader& header) {
  in.SetContext("magic");
  ASSIGN_OR_RETURN(const uint32_t magic, in.Read<uint32_t>());
  if (magic != kMagic) {
    const auto bytes = std::bit_cast<std::array<char, 4>>(magic);
    return in.ErrorAt(0, absl::StrCat("found \"", Printable({bytes.data(), bytes.size()}),
                                      "\", expected \"GGUF\""));
  }
  in.SetContext("version");
  ASSIGN_OR_RETURN(header.version, in.Read<uint32_t>());
  if (header.version != 2 && header.version != 3) {
    const bool swapped = (header.version & 0xffff) == 0 && header.version != 0;
    return in.ErrorAt(4, absl::StrCat("found ", header.version, ", expected 2 or 3",
                                      swapped ? " (a big-endian file?)" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufHeader> ParseGguf(const ModelFile& file) {
  GgufHeader header;
  ByteCursor in(file);
  RETURN_IF_ERROR(ReadPreamble(in, header));
  in.SetContext("tensor count");
  uint64_t at = in.offset();
  ASSIGN_OR_RETURN(const uint64_t tensor_count, in.Read<uint64_t>());
  RETURN_IF_ERROR(CheckCount(in, at, tensor_count, kMaxGgufTensors, kSmallestTensor));
  in.SetContext("key count");
  at = in.offset();
  ASSIGN_OR_RETURN(const uint64_t key_count, in.Read<uint64_t>());
  RETURN_IF_ERROR(CheckCount(in, at, key_count, kMaxGgufKeys, kSmallestKey));
  RETURN_IF_ERROR(ReadKeys(in, key_count, header));
  in.SetContext("key general.alignment");
  RETURN_IF_ERROR(ReadAlignment(in, header));
  RETURN_IF_ERROR(ReadTensors(in, tensor_count, header));
  RETURN_IF_ERROR(PlaceTensors(in, file, header));
  return header;
}

const GgufValue* GgufHeader::FindKey(std::string_view key) const {
  const auto it = key_index.find(key);
  return it == key_index.end() ? nullptr : &keys[it->second].second;
}

const GgufTensor* GgufHeader::FindTensor(std::string_view name) const {
  const auto it = tensor_index.find(name);
  return it == tensor_index.end() ? nullptr : &tensors[it->second];
}

std::string_view NameOf(GgufType type) {
  constexpr std::string_view kNames[] = {"UINT8",  "INT8",    "UINT16", "INT16",  "UINT32",
                                         "INT32",  "FLOAT32", "BOOL",   "STRING", "ARRAY",
                                         "UINT64", "INT64",   "FLOAT64"};
  return kNames[static_cast<uint32_t>(type)];
}

std::string ShapeText(const GgufTensor& tensor) {
  return absl::StrCat(
      "[", absl::StrJoin(tensor.dims.begin(), tensor.dims.begin() + tensor.dim_count, ", "), "]");
}

}  // namespace quire
