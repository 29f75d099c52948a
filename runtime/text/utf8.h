// UTF-8 as Unicode defines it (no surrogates, no overlong forms, at most U+10FFFF), for text that
// may end in the middle of a code point. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire {

bool IsValidUtf8(std::string_view bytes);

// Length of the longest prefix whose decoding no later byte can change. The rest, at most 3 bytes,
// is the beginning of a code point that may still complete.
size_t CompletePrefix(std::string_view bytes);

// Largest n <= limit at which `text`, valid UTF-8, can be cut between code points.
size_t CutBefore(std::string_view text, size_t limit);

// Appends `bytes` to `out`, each maximal subpart of an ill-formed sequence as one U+FFFD. Cutting
// the input at CompletePrefix and appending the parts gives the same text as appending the whole.
void AppendUtf8(std::string_view bytes, std::string& out);

}  // namespace quire
