#include "server/cli/request_log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using testing::HasSubstr;

RequestRecord Record() {
  RequestRecord record;
  record.request_id = "job \"1\"";
  record.tenant = "team-7";
  record.code = absl::StatusCode::kDeadlineExceeded;
  record.reason = "DEADLINE";
  record.outputs = 2;
  record.usage = {.prompt_tokens = 12, .cached_prompt_tokens = 8, .completion_tokens = 30};
  record.timing = {.intake_us = 1000, .queue_us = 2000, .prefill_us = 3000, .preemptions = 4};
  record.duration_us = 1'500'000;
  return record;
}

TEST(RequestLog, ALineIsOneJsonObject) {
  const std::string line = JsonLine(Record());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["request_id"], "job \"1\"");
  EXPECT_EQ(json["tenant"], "team-7");
  EXPECT_EQ(json["code"], "DEADLINE_EXCEEDED");
  EXPECT_EQ(json["reason"], "DEADLINE");
  EXPECT_EQ(json["outputs"], 2);
  EXPECT_EQ(json["prompt_tokens"], 12);
  EXPECT_EQ(json["cached_prompt_tokens"], 8);
  EXPECT_EQ(json["completion_tokens"], 30);
  EXPECT_EQ(json["queue_us"], 2000);
  EXPECT_EQ(json["duration_us"], 1'500'000);
  EXPECT_EQ(json["preemptions"], 4);
}

TEST(RequestLog, SaysTheSameInWordsToPeople) {
  const std::string line = PlainLine(Record());
  EXPECT_THAT(line, HasSubstr("team-7/job \"1\": DEADLINE_EXCEEDED DEADLINE"));
  EXPECT_THAT(line, HasSubstr("12 + 30 tokens (8 cached), 1.500 s, first token after 0.006 s"));
  EXPECT_THAT(line, HasSubstr("4 preemptions"));
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int in() const { return ends_[1]; }
  // What has been written until now, which is at least `least` bytes.
  std::string Read(size_t least) {
    std::string out;
    std::array<char, 4096> part;
    while (out.size() < least) {
      const ssize_t got = read(ends_[0], part.data(), part.size());
      if (got <= 0) break;
      out.append(part.data(), static_cast<size_t>(got));
    }
    return out;
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(RequestLog, WritesLinesInOrder) {
  Pipe pipe;
  RequestLog log(pipe.in(), true);
  RequestRecord first, second;
  first.request_id = "first";
  second.request_id = "second";
  log.Write(first);
  log.Write(second);
  const std::string wanted = JsonLine(first) + JsonLine(second);
  EXPECT_EQ(pipe.Read(wanted.size()), wanted);
  EXPECT_EQ(log.dropped(), 0u);
}

TEST(RequestLog, FlushWaitsForTheLinesButNotForAReader) {
  Pipe pipe;
  RequestLog log(pipe.in(), true);
  log.Write(Record());
  ASSERT_TRUE(log.Flush(absl::Seconds(20)));
  int size = 0;
  ASSERT_EQ(ioctl(pipe.in(), FIONREAD, &size), 0);
  EXPECT_EQ(static_cast<size_t>(size), JsonLine(Record()).size());
  for (int i = 0; i < 1000; ++i) log.Write(Record());  // more than the pipe holds
  EXPECT_FALSE(log.Flush(absl::Milliseconds(1)));
}

TEST(RequestLog, DropsAndCountsWhatNobodyReadsAndEndsNevertheless) {
  Pipe pipe;  // holds 64 KiB
  RequestLog log(pipe.in(), true);
  for (int i = 0; i < 4000; ++i) log.Write(Record());
  EXPECT_GT(log.dropped(), 0u);
}

}  // namespace
}  // namespace quire
