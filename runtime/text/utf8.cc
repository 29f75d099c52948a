#include "runtime/text/utf8.h"

#include <cstdint>

namespace quire {
namespace {

// What stands at the front of `bytes` (not empty): a code point, bytes that form none, or the
// beginning of one.
struct Front {
  enum Kind { kWhole, kIllFormed, kUnfinished } kind;
  size_t size;  // of the code point, or of the maximal subpart (Unicode 16, section 3.9, table 3-7)
};

Front Classify(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {Front::kWhole, 1};
  size_t size = 0;
  uint8_t low = 0x80, high = 0xBF;  // bounds of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;   // no overlong forms
    if (lead == 0xED) high = 0x9F;  // no surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // at most U+10FFFF
  } else {
    return {Front::kIllFormed, 1};
  }
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Front::kUnfinished, i};
    if (at(i) < low || at(i) > high) return {Front::kIllFormed, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Front::kWhole, size};
}

}  // namespace

bool IsValidUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Front front = Classify(bytes);
    if (front.kind != Front::kWhole) return false;
    bytes.remove_prefix(front.size);
  }
  return true;
}

size_t CompletePrefix(std::string_view bytes) {
  // Only the last 3 bytes can begin an unfinished code point, and a lead byte always begins a new
  // one.
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const size_t begin = bytes.size() - back;
    if ((static_cast<uint8_t>(bytes[begin]) & 0xC0) == 0x80) continue;
    return Classify(bytes.substr(begin)).kind == Front::kUnfinished ? begin : bytes.size();
  }
  return bytes.size();
}

size_t CutBefore(std::string_view text, size_t limit) {
  size_t n = limit < text.size() ? limit : text.size();
  while (n > 0 && n < text.size() && (static_cast<uint8_t>(text[n]) & 0xC0) == 0x80) --n;
  return n;
}

void AppendUtf8(std::string_view bytes, std::string& out) {
  out.reserve(out.size() + bytes.size());
  while (!bytes.empty()) {
    const Front front = Classify(bytes);
    if (front.kind == Front::kWhole) {
      out.append(bytes.substr(0, front.size));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    bytes.remove_prefix(front.size);
  }
}

}  // namespace quire
