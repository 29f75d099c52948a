// Tenants, priorities, several outputs, the use of the cache: what a client asks of the scheduler
// and what it sees of it.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_info.h"
#include "server/rpc/status_map.h"
#include "tests/e2e/test_server.h"

namespace quire {
namespace {

using ::testing::IsEmpty;

using Metadata = std::vector<std::pair<std::string, std::string>>;

Reply Generate(TestServer& server, const v1::GenerateRequest& request, const Metadata& metadata) {
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  return server.Generate(request, nullptr, &context);
}

v1::AbortStatus Abort(TestServer& server, const std::string& id, const Metadata& metadata) {
  grpc::ClientContext context;
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  v1::AbortRequest request;
  request.add_request_ids(id);
  v1::AbortResponse response;
  const grpc::Status status = server.inference().Abort(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return status.ok() ? response.results(0).status() : v1::ABORT_STATUS_UNSPECIFIED;
}

std::map<uint32_t, std::vector<uint32_t>> IdsByOutput(const Reply& reply) {
  std::map<uint32_t, std::vector<uint32_t>> ids;
  for (const v1::GenerateResponse& message : reply.messages) {
    for (const v1::TokenInfo& token : message.delta().tokens()) {
      ids[message.delta().output_index()].push_back(token.id());
    }
  }
  return ids;
}

v1::GenerateRequest Several(uint32_t outputs, uint32_t max_tokens) {
  v1::GenerateRequest request =
      MakeGenerate("a prompt of more than one block: " + std::string(100, 'x'), max_tokens);
  request.mutable_sampling()->set_num_outputs(outputs);
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_seed(11);
  request.mutable_output()->set_tokens(true);
  return request;
}

TEST(Outputs, EachEndsOnceAndUsageCountsThePromptOnce) {
  TestServer server;
  const Reply reply = server.Generate(Several(4, 20));
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  std::map<uint32_t, int> ends;
  for (size_t i = 0; i < reply.messages.size(); ++i) {
    const v1::GenerateResponse& message = reply.messages[i];
    if (message.has_finished()) ++ends[message.finished().output_index()];
    EXPECT_EQ(message.has_usage(), i + 1 == reply.messages.size());
  }
  EXPECT_EQ(ends, (std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(reply.usage.prompt_tokens(), 1u + 33 + 100);
  EXPECT_EQ(reply.usage.completion_tokens() + reply.usage.stop_tokens(), 80u);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Outputs, AreTheSameHoweverManyThereAre) {
  TestServer server;
  const auto eight = IdsByOutput(server.Generate(Several(8, 40)));
  const auto three = IdsByOutput(server.Generate(Several(3, 40)));
  const auto one = IdsByOutput(server.Generate(Several(1, 40)));
  ASSERT_EQ(eight.size(), 8u);
  for (const auto& [index, ids] : three) EXPECT_EQ(ids, eight.at(index)) << index;
  EXPECT_EQ(one.at(0), eight.at(0));
  EXPECT_NE(eight.at(0), eight.at(1)) << "else the test proves nothing";
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Outputs, AreTheSameWhenMemoryIsShort) {
  const auto plain = IdsByOutput(TestServer().Generate(Several(8, 100)));
  TestServerOptions options;
  options.model.limits.num_blocks = 6;
  TestServer server(options);
  EXPECT_EQ(IdsByOutput(server.Generate(Several(8, 100))), plain);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Outputs, ComeWholeInFinalMode) {
  TestServer server;
  v1::GenerateRequest request = Several(3, 30);
  const auto stream = IdsByOutput(server.Generate(request));
  request.mutable_output()->set_mode(v1::STREAM_MODE_FINAL);
  const Reply whole = server.Generate(request);
  EXPECT_EQ(IdsByOutput(whole), stream);
  EXPECT_EQ(whole.messages.size(), 6u) << "a delta and an end for each";
}

TEST(Outputs, AreEndedTogetherByAbort) {
  TestServer server;
  server.runner().Close();
  v1::GenerateRequest request = Several(4, 500);
  request.set_request_id("many");
  Reply reply;
  std::thread call([&] { reply = server.Generate(request); });
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  server.runner().Allow(4);
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  EXPECT_EQ(Abort(server, "many", {}), v1::ABORT_STATUS_ABORTED);
  server.runner().Open();
  call.join();
  EXPECT_TRUE(reply.status.ok()) << reply.status;
  int aborted = 0;
  for (const v1::GenerateResponse& message : reply.messages) {
    aborted += message.finished().reason() == v1::FINISH_REASON_ABORTED;
  }
  EXPECT_EQ(aborted, 4);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Outputs, BeyondWhatTheBatchHoldsAreRefused) {
  TestServerOptions options;
  options.scheduler.max_running = 2;
  TestServer server(options);
  EXPECT_TRUE(server.Generate(Several(2, 4)).status.ok());
  EXPECT_EQ(GetErrorInfo(server.Generate(Several(3, 4)).status).reason, "FIELD_INVALID");
}

TEST(Tenants, HaveRequestIdsOfTheirOwn) {
  TestServer server;
  server.runner().Close();
  v1::GenerateRequest request = MakeGenerate("x", 500);
  request.set_request_id("job");
  Reply a, b;
  std::thread first([&] { a = Generate(server, request, {{"x-quire-tenant", "a"}}); });
  ASSERT_TRUE(server.runner().WaitUntilHeld());
  std::thread second([&] { b = Generate(server, request, {{"x-quire-tenant", "b"}}); });
  while (server.inbox().live() < 2) absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(GetErrorInfo(Generate(server, request, {{"x-quire-tenant", "a"}}).status).reason,
            "REQUEST_ID_LIVE");
  EXPECT_EQ(Abort(server, "job", {}), v1::ABORT_STATUS_NOT_LIVE);
  EXPECT_EQ(Abort(server, "job", {{"x-quire-tenant", "c"}}), v1::ABORT_STATUS_NOT_LIVE);
  EXPECT_EQ(Abort(server, "job", {{"x-quire-tenant", "b"}}), v1::ABORT_STATUS_ABORTED);
  EXPECT_EQ(Abort(server, "job", {{"x-quire-tenant", "a"}}), v1::ABORT_STATUS_ABORTED);
  server.runner().Open();
  first.join();
  second.join();
  EXPECT_EQ(a.finished.reason(), v1::FINISH_REASON_ABORTED);
  EXPECT_EQ(b.finished.reason(), v1::FINISH_REASON_ABORTED);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(Tenants, ManyNamesDoNoHarm) {
  TestServer server;
  for (int i = 0; i < 300; ++i) {
    const Reply reply =
        Generate(server, MakeGenerate("x", 1), {{"x-quire-tenant", "tenant-" + std::to_string(i)}});
    ASSERT_TRUE(reply.status.ok()) << reply.status;
  }
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

TEST(PrefixCache, IsUsedByTheSameTenantAndSaltAndChangesNoOutput) {
  TestServer server;
  v1::GenerateRequest request = MakeGenerate(std::string(200, 'p') + "tail", 12);
  request.mutable_output()->set_tokens(true);
  const Metadata a = {{"x-quire-tenant", "a"}}, b = {{"x-quire-tenant", "b"}};
  const Reply first = Generate(server, request, a);
  EXPECT_EQ(first.usage.cached_prompt_tokens(), 0u);
  const Reply again = Generate(server, request, a);
  EXPECT_GE(again.usage.cached_prompt_tokens(), 192u);
  EXPECT_LT(again.usage.cached_prompt_tokens(), 205u) << "a token is left to compute";
  const Reply other = Generate(server, request, b);
  EXPECT_EQ(other.usage.cached_prompt_tokens(), 0u);
  request.mutable_cache()->set_salt("pepper");
  const Reply salted = Generate(server, request, a);
  EXPECT_EQ(salted.usage.cached_prompt_tokens(), 0u);
  EXPECT_GT(Generate(server, request, a).usage.cached_prompt_tokens(), 0u);
  request.clear_cache();
  request.mutable_cache()->set_bypass(true);
  const Reply bypass = Generate(server, request, a);
  EXPECT_EQ(bypass.usage.cached_prompt_tokens(), 0u);
  for (const Reply* reply : {&again, &other, &salted, &bypass}) EXPECT_EQ(reply->ids, first.ids);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
  const Books books = server.books();
  EXPECT_EQ(books.streams.cached_prompt_tokens, books.steps.prefix_hit_tokens);
  EXPECT_EQ(books.streams.prompt_tokens, 6u * 205);
  EXPECT_GT(books.steps.blocks_cached, 0);
}

TEST(PrefixCache, CanBeOff) {
  TestServerOptions options;
  options.scheduler.prefix_cache = false;
  TestServer server(options);
  const v1::GenerateRequest request = MakeGenerate(std::string(200, 'p'), 4);
  EXPECT_EQ(server.Generate(request).usage.cached_prompt_tokens(), 0u);
  EXPECT_EQ(server.Generate(request).usage.cached_prompt_tokens(), 0u);
  EXPECT_EQ(server.books().steps.blocks_cached, 0);
}

TEST(KvPolicy, BoundsTheMemoryOfALongOutputAndIsADomainOfItsOwn) {
  TestServerOptions options;
  options.model.limits.num_blocks = 6;  // 384 tokens
  TestServer server(options);
  v1::GenerateRequest request = MakeGenerate(std::string(100, 'w'), 600);
  EXPECT_EQ(server.Generate(request).finished.length_bound(), v1::LENGTH_BOUND_POOL);
  request.mutable_kv_policy()->set_window_tokens(64);
  const Reply windowed = server.Generate(request);
  ASSERT_TRUE(windowed.status.ok()) << windowed.status;
  EXPECT_EQ(windowed.usage.completion_tokens() + windowed.usage.stop_tokens(), 600u);
  EXPECT_EQ(windowed.usage.cached_prompt_tokens(), 0u);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

// Prompts and outputs of many sizes, priorities, tenants and numbers of outputs.
v1::GenerateRequest Mixed(int i) {
  v1::GenerateRequest request = MakeGenerate(
      std::string(static_cast<size_t>(5 + (i * 37) % 90), static_cast<char>('a' + i % 7)),
      static_cast<uint32_t>(3 + (i * 13) % 30));
  request.mutable_sampling()->set_num_outputs(1 + static_cast<uint32_t>(i % 10 == 0));
  request.mutable_sampling()->set_temperature(1);
  request.mutable_sampling()->set_seed(static_cast<uint64_t>(i));
  request.mutable_output()->set_tokens(true);
  request.set_priority(i % 5 - 2);
  return request;
}

TEST(Load, OfTwoHundredOnAPoolForEightEndsEachOnceWithTheOutputOfASoloRun) {
  constexpr int kRequests = 200;
  std::vector<std::map<uint32_t, std::vector<uint32_t>>> solo;
  {
    TestServer server;
    for (int i = 0; i < kRequests; ++i) solo.push_back(IdsByOutput(server.Generate(Mixed(i))));
  }
  TestServerOptions options;
  options.model.limits.num_blocks = 16;  // two for each of eight
  options.max_calls = 2 * kRequests;
  TestServer server(options);
  std::vector<Reply> replies(kRequests);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRequests; ++i) {
    threads.emplace_back([&, i] {
      replies[static_cast<size_t>(i)] =
          Generate(server, Mixed(i), {{"x-quire-tenant", "t" + std::to_string(i % 3)}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kRequests; ++i) {
    const Reply& reply = replies[static_cast<size_t>(i)];
    ASSERT_TRUE(reply.status.ok()) << i << ": " << reply.status;
    EXPECT_EQ(IdsByOutput(reply), solo[static_cast<size_t>(i)]) << i;
  }
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
  EXPECT_EQ(server.books().streams.finished[static_cast<size_t>(Outcome::kOk)],
            static_cast<uint64_t>(kRequests));
}

// The identities A1 to A8 at every moment of a load that cancels, aborts, fails and runs out of
// memory, and A9 after it.
TEST(Accounting, BalancesOnEveryScrapeUnderLoad) {
  TestServerOptions options;
  options.model.limits.num_blocks = 12;
  options.model.nan_row = [](const FakeRow& row) { return row.token == TokenId{'!'}; };
  options.scheduler.max_running = 6;
  options.scheduler.max_waiting = 20;
  options.max_calls = 200;
  TestServer server(options);
  std::atomic<bool> over{false};
  std::atomic<int> scrapes{0};
  std::string broken;
  std::thread scraper([&] {
    while (!over) {
      if (const absl::Status status = CheckBooks(server.books()); !status.ok() && broken.empty()) {
        broken = std::string(status.message());
      }
      ++scrapes;
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&server, c] {
      for (int i = 0; i < 12; ++i) {
        const int kind = (c + i) % 6;
        v1::GenerateRequest request = Several(1 + static_cast<uint32_t>(i % 3), 5 + 7 * i);
        if (kind == 0) request.mutable_prompt()->set_text("boom!");
        if (kind == 1) request.mutable_prompt()->set_text("");
        if (kind == 2) request.mutable_stopping()->set_time_limit_ms(5);
        request.set_priority(i % 2);
        grpc::ClientContext context;
        context.AddMetadata("x-quire-tenant", c % 2 == 0 ? "even" : "odd");
        if (kind == 3) {
          context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
        }
        server.Generate(
            request,
            [kind](grpc::ClientContext& call, const auto&) {
              if (kind == 4) call.TryCancel();
            },
            &context);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  over = true;
  scraper.join();
  EXPECT_EQ(broken, "");
  EXPECT_GT(scrapes, 5);
  EXPECT_THAT(server.CheckIdle(), IsEmpty());
}

}  // namespace
}  // namespace quire
