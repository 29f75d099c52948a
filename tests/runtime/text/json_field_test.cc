#include "runtime/text/json_field.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"

namespace quire {
namespace {

JsonField Field(JsonField::Kind kind) {
  return {.field = "f", .kind = kind, .reserved = {"role"}, .on_string = {}};
}

std::string Object(std::string_view text) {
  const auto out = RewriteJson(Field(JsonField::Kind::kObject), text);
  return out.ok() ? *out : GetErrorInfo(out.status()).violations.at(0).description;
}

std::string Array(std::string_view text) {
  const auto out = RewriteJson(Field(JsonField::Kind::kArray), text);
  return out.ok() ? *out : GetErrorInfo(out.status()).violations.at(0).description;
}

TEST(JsonField, KeepsOrderNumbersAndText) {
  EXPECT_EQ(Object(""), "{}");
  EXPECT_EQ(Array(""), "[]");
  EXPECT_EQ(Object(" { } "), "{}");
  EXPECT_EQ(
      Object(
          R"({"b": [1, -2, 2.50, 1e400, 18446744073709551615], "a": {"x": null, "y": [true, false, [], {}]}})"),
      "not valid JSON");  // 1e400 is out of range
  EXPECT_EQ(
      Object(
          R"({"b": [1, -2, 2.50, 1E5, 18446744073709551615], "a": {"x": null, "y": [true, false, [], {}]}})"),
      R"({"b":[1,-2,2.50,1E5,18446744073709551615],"a":{"x":null,"y":[true,false,[],{}]}})");
  EXPECT_EQ(Array(R"(["\u00e9\n\"\\\/\ud83d\ude42\u0000"])"), "[\"é\\u000a\\\"\\\\/🙂\\u0000\"]");
}

TEST(JsonField, RefusesWhatIsNoJson) {
  for (const char* bad : {"{", "{\"a\": [1,]}", "{\"a\"}", "nul", "{} {}", "{\"a\": \"\xFF\"}",
                          "{\"a\": \"\\ud800\"}", " "}) {
    EXPECT_EQ(Object(bad), "not valid JSON") << bad;
  }
}

TEST(JsonField, RefusesTheOtherKind) {
  for (const char* other : {"[]", "1", "null", "true", "\"text\"", "1.5"}) {
    EXPECT_THAT(Object(other), testing::HasSubstr("JSON, but")) << other;
  }
  for (const char* other : {"{}", "1", "\"text\""})
    EXPECT_THAT(Array(other), testing::HasSubstr("JSON, but")) << other;
}

TEST(JsonField, RefusesReservedMembersAtTheTopOnly) {
  EXPECT_EQ(Object(R"({"a": 1, "role": 2})"), "sets role");
  EXPECT_EQ(Object(R"({"r\u006fle": 2})"), "sets role");
  EXPECT_EQ(Object(R"({"a": {"role": 2}})"), R"({"a":{"role":2}})");
}

TEST(JsonField, BoundsDepthWithConstantStack) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(Array(nested(64)), nested(64));
  EXPECT_EQ(Array(nested(65)), "JSON nested over 64 deep");
  EXPECT_EQ(Array(std::string(1'000'000, '[')), "JSON nested over 64 deep");
}

TEST(JsonField, ReplacesStringsAndKeys) {
  JsonField field = Field(JsonField::Kind::kObject);
  field.on_string = [](std::string_view text) { return std::string(text) + "!"; };
  EXPECT_EQ(*RewriteJson(field, R"({"a": ["b", {"c": 1}]})"), R"({"a!":["b!",{"c!":1}]})");
}

TEST(JsonField, IsLinearInTheMembersOfAnObject) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\":1,";
  text += "\"last\":1}";
  EXPECT_EQ(Object(text), text);
}

}  // namespace
}  // namespace quire
