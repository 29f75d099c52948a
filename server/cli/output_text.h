// The messages of a Generate call as text for people: one output streams, several come whole one
// after the other, and what was asked about tokens is a table below each. Pure; one thread.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <map>
#include <string>

#include "quire/v1/inference.pb.h"

namespace quire {

using TokenList = google::protobuf::RepeatedPtrField<v1::TokenInfo>;

// A line for each token: piece, logprob, rank, id and alternatives. Empty without tokens.
std::string TokenTable(const TokenList& tokens);

class OutputText {
 public:
  explicit OutputText(bool several) : several_(several) {}

  // What to print now.
  std::string Take(const v1::GenerateResponse& message);
  // What to print when the call has ended; `ok`: not as an error.
  std::string End(bool ok);

 private:
  struct Output {
    std::string text;
    TokenList tokens;
  };
  static std::string Whole(uint32_t index, const Output& output);

  const bool several_;
  bool streamed_ = false;               // some text has gone out
  std::map<uint32_t, Output> outputs_;  // not printed in full yet
};

}  // namespace quire
