#include "runtime/text/control_splitter.h"

#include <algorithm>

namespace quire {

ControlSplitter::ControlSplitter(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.spelling.empty(); });
  nodes_.emplace_back();
  first_.fill(-1);
  for (const Entry& entry : entries_) {
    int32_t node = 0;
    for (const char byte : entry.spelling) {
      int32_t child = Child(node, byte);
      if (child < 0) {
        child = static_cast<int32_t>(nodes_.size());
        nodes_.push_back(
            {.byte = byte, .child = -1, .next = nodes_[node].child, .id = TokenId::kNone});
        nodes_[node].child = child;
        if (node == 0) first_[static_cast<uint8_t>(byte)] = child;
      }
      node = child;
    }
    if (nodes_[node].id == TokenId::kNone) nodes_[node].id = entry.id;
  }
}

int32_t ControlSplitter::Child(int32_t node, char byte) const {
  if (node == 0) return first_[static_cast<uint8_t>(byte)];
  int32_t child = nodes_[node].child;
  while (child >= 0 && nodes_[child].byte != byte) child = nodes_[child].next;
  return child;
}

ControlSplitter::Match ControlSplitter::MatchAt(std::string_view text, size_t at) const {
  Match match;
  int32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    node = Child(node, text[i]);
    if (node < 0) break;
    if (nodes_[node].id != TokenId::kNone)
      match = {.begin = at, .end = i + 1, .id = nodes_[node].id};
  }
  return match;
}

ControlSplitter::Match ControlSplitter::Next(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (first_[static_cast<uint8_t>(text[at])] < 0) continue;
    if (const Match match = MatchAt(text, at); match.end != 0) return match;
  }
  return {};
}

bool ControlSplitter::BeginsAt(std::string_view text, size_t at) const {
  int32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    node = Child(node, text[i]);
    if (node < 0) return false;
    if (nodes_[node].id != TokenId::kNone) return true;
  }
  return node > 0;  // every leaf has an id, so the spelling goes on
}

bool ControlSplitter::BeginsInside(std::string_view text) const {
  for (const Entry& entry : entries_) {
    const std::string_view spelling = entry.spelling;
    for (size_t skip = 1; skip < spelling.size(); ++skip) {
      if (text.starts_with(spelling.substr(skip))) return true;
    }
  }
  return false;
}

}  // namespace quire
