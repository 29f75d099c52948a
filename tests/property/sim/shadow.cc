#include "tests/property/sim/shadow.h"

#include "absl/strings/str_cat.h"

namespace quire::sim {

void Coverage::Merge(const Coverage& other){
#define X(name) name += other.name;
    QUIRE_SIM_COVERAGE(X)
#undef X
}

std::string ToText(const Coverage& coverage) {
  std::string text;
#define X(name) absl::StrAppend(&text, #name, " ", coverage.name, ", ");
  QUIRE_SIM_COVERAGE(X)
#undef X
  text.resize(text.size() - 2);
  return text;
}

}  // namespace quire::sim
