#include "server/metrics/exposer.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace quire {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

std::string Ask(const std::string& method, int port, const std::string& path) {
  const int fd = Connect(port);
  if (fd < 0) return "";
  const std::string request = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string reply;
  char buffer[4096];
  for (ssize_t n = read(fd, buffer, sizeof(buffer)); n > 0; n = read(fd, buffer, sizeof(buffer))) {
    reply.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return reply;
}

std::string Get(int port, const std::string& path) { return Ask("GET", port, path); }

TEST(Exposer, ServesMetricsAndHealth) {
  HealthReport health{.live = true, .started = false, .ready = false, .why = "loading"};
  auto exposer = Exposer::Start({.listen = "127.0.0.1:0",
                                 .health = [&health] { return health; },
                                 .metrics = [] { return std::string("quire_ready 1\n"); },
                                 .load = [] { return std::string("small\n"); }});
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const int port = (*exposer)->port();
  ASSERT_GT(port, 0);
  EXPECT_THAT(Get(port, "/livez"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/startupz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("loading"));
  health = {.live = true, .started = true, .ready = true, .why = ""};
  EXPECT_THAT(Get(port, "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/startupz"), StartsWith("HTTP/1.1 200"));
  health = {.live = false, .started = true, .ready = false, .why = "stalled"};
  EXPECT_THAT(Get(port, "/livez"), StartsWith("HTTP/1.1 503"));
  const std::string metrics = Get(port, "/metrics");
  EXPECT_THAT(metrics, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(metrics, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics, HasSubstr("\r\n\r\nquire_ready 1\n"));
  EXPECT_THAT(Get(port, "/metrics/load"), HasSubstr("small"));
  EXPECT_THAT(Get(port, "/metrics/other"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(port, "/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(port, "/livez/"), StartsWith("HTTP/1.1 404"));
}

TEST(Exposer, AnswersHeadAsGetWithoutABodyAndRefusesOtherMethods) {
  auto exposer = Exposer::Start({.listen = "127.0.0.1:0",
                                 .health = [] { return HealthReport{.ready = true}; },
                                 .metrics = [] { return std::string("quire_ready 1\n"); }});
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const int port = (*exposer)->port();
  for (const char* path : {"/livez", "/readyz", "/metrics"}) {
    const std::string head = Ask("HEAD", port, path);
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
    EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
    const std::string post = Ask("POST", port, path);
    EXPECT_THAT(post, StartsWith("HTTP/1.1 405"));
    EXPECT_THAT(post, HasSubstr("Allow: GET, HEAD"));
    EXPECT_THAT(Ask("DELETE", port, path), StartsWith("HTTP/1.1 405"));
  }
}

TEST(Exposer, AnswersWhileTwentyHalfRequestsHang) {
  auto exposer = Exposer::Start({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const int port = (*exposer)->port();
  std::vector<int> hanging;
  for (int i = 0; i < 20; ++i) {
    hanging.push_back(Connect(port));
    ASSERT_GE(hanging.back(), 0);
    ASSERT_EQ(write(hanging.back(), "GET /li", 7), 7);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(Get(port, "/livez"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  for (const int fd : hanging) close(fd);
}

TEST(Exposer, ATakenPortIsUnavailable) {
  auto first = Exposer::Start({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  const auto second = Exposer::Start({.listen = "127.0.0.1:" + std::to_string((*first)->port())});
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST(Exposer, ClosesItsPort) {
  auto exposer = Exposer::Start({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(exposer.ok());
  const int port = (*exposer)->port();
  exposer->reset();
  EXPECT_EQ(Get(port, "/livez"), "");
}

}  // namespace
}  // namespace quire
