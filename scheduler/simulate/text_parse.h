// Reading numbers and fields out of text: whole-string matches only. Pure.
#pragma once

#include <charconv>
#include <string_view>
#include <vector>

namespace quire {

// The whole of `text` as a number; false otherwise.
template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

constexpr std::string_view StripSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Parts between separators, stripped; as many as there are separators and one more.
inline void SplitFields(std::string_view text, char separator,
                        std::vector<std::string_view>* fields) {
  fields->clear();
  for (;;) {
    const size_t end = text.find(separator);
    fields->push_back(StripSpace(text.substr(0, end)));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace quire
