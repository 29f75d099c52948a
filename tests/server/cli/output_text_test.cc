#include "server/cli/output_text.h"

#include <string>

#include "gtest/gtest.h"

namespace quire {
namespace {

void AddToken(v1::Delta* delta, uint32_t id, const std::string& piece, float logprob) {
  v1::TokenInfo* token = delta->add_tokens();
  token->set_id(id);
  token->set_piece(piece);
  token->set_logprob(logprob);
  token->set_rank(1);
}

void AddTop(v1::Delta* delta, const std::string& piece, float logprob) {
  v1::Candidate* top = delta->mutable_tokens()->rbegin()->add_top();
  top->set_piece(piece);
  top->set_logprob(logprob);
}

v1::GenerateResponse Text(uint32_t index, const std::string& text) {
  v1::GenerateResponse message;
  message.mutable_delta()->set_output_index(index);
  message.mutable_delta()->set_text(text);
  return message;
}

v1::GenerateResponse End(uint32_t index) {
  v1::GenerateResponse message;
  message.mutable_finished()->set_output_index(index);
  return message;
}

TEST(OutputText, StreamsOneOutputAndEndsItsLine) {
  OutputText output(false);
  EXPECT_EQ(output.Take(Text(0, "Hel")), "Hel");
  EXPECT_EQ(output.Take(Text(0, "lo")), "lo");
  EXPECT_EQ(output.Take(End(0)), "");
  EXPECT_EQ(output.End(true), "\n");
}

TEST(OutputText, ACallThatFailsBeforeAnyTextPrintsNothing) {
  OutputText output(false);
  EXPECT_EQ(output.End(false), "");
}

TEST(OutputText, PrintsSeveralOutputsWhole) {
  OutputText output(true);
  EXPECT_EQ(output.Take(Text(1, "a")), "");
  EXPECT_EQ(output.Take(Text(0, "b")), "");
  EXPECT_EQ(output.Take(Text(1, "c")), "");
  EXPECT_EQ(output.Take(End(1)), "[1] ac\n");
  EXPECT_EQ(output.End(false), "[0] b\n");
}

TEST(OutputText, LogprobsAndAlternativesAreATableBelowTheText) {
  OutputText output(false);
  v1::GenerateResponse first = Text(0, " the");
  AddToken(first.mutable_delta(), 260, " the", -0.5F);
  AddTop(first.mutable_delta(), " the", -0.5F);
  AddTop(first.mutable_delta(), " another", -12.25F);
  v1::GenerateResponse second = Text(0, "\xc3\xa9\n");
  AddToken(second.mutable_delta(), 7, "\xc3\xa9", -2);
  AddTop(second.mutable_delta(), "\xc3", -0.25F);
  AddTop(second.mutable_delta(), "x", -0.75F);
  AddToken(second.mutable_delta(), 49151, "\n", -0.125F);
  EXPECT_EQ(output.Take(first), " the");
  EXPECT_EQ(output.Take(second), "\xc3\xa9\n");
  EXPECT_EQ(output.End(true),
            "\n"
            "token     logprob   rank      id  alternatives\n"
            "' the'   -0.50000      1     260  ' the'      -0.50000  ' another' -12.25000\n"
            "'\xc3\xa9'      -2.00000      1       7  '\\xc3'      -0.25000  'x'         -0.75000\n"
            "'\\n'     -0.12500      1   49151\n");
}

TEST(OutputText, TheTableOfEachOfSeveralOutputsIsBelowItsText) {
  OutputText output(true);
  v1::GenerateResponse message = Text(2, "x");
  AddToken(message.mutable_delta(), 3, "x", -1);
  output.Take(message);
  EXPECT_EQ(output.Take(End(2)),
            "[2] x\n"
            "token    logprob   rank      id\n"
            "'x'     -1.00000      1       3\n");
  EXPECT_EQ(output.End(true), "");
}

}  // namespace
}  // namespace quire
