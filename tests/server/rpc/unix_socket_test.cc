#include "server/rpc/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "server/rpc/rpc_server.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    char folder[] = "/tmp/quire-socket-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/s.sock";
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(folder_); }

  int Bind() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  absl::Status Claim() const { return ClaimUnixAddress("unix:" + path_); }

  std::string folder_, path_;
};

TEST_F(UnixSocketTest, AFreePathAndOtherAddressesAreFine) {
  EXPECT_TRUE(Claim().ok());
  EXPECT_TRUE(ClaimUnixAddress("127.0.0.1:0").ok());
}

TEST_F(UnixSocketTest, ASocketWithAListenerIsTaken) {
  const int fd = Bind();
  ASSERT_EQ(listen(fd, 1), 0);
  const absl::Status status = Claim();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::exists(path_));
  close(fd);
}

TEST_F(UnixSocketTest, AStaleSocketIsRemoved) {
  close(Bind());
  EXPECT_TRUE(Claim().ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, WhatIsNoSocketStays) {
  std::ofstream(path_) << "precious";
  const absl::Status status = Claim();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, ASecondServerDoesNotStealTheSocketOfTheFirst) {
  SteadyClock clock;
  const auto start = [&] {
    return RpcServer::Start({.listen = {"unix:" + path_}, .identity = {}, .clock = &clock});
  };
  auto first = start();
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = start();
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr(path_));
  EXPECT_FALSE(Claim().ok()) << "the first still listens";
  first->reset();
  EXPECT_TRUE(start().ok());
}

TEST(RpcServer, SaysWhyAnAddressCannotBeListenedOn) {
  SteadyClock clock;
  const auto start = [&](const std::string& address) {
    return RpcServer::Start({.listen = {address}, .identity = {}, .clock = &clock});
  };
  const auto first = start("127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status taken = start((*first)->addresses()[0]).status();
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_THAT(taken.message(), HasSubstr((*first)->addresses()[0] + ": Address already in use"));
  const absl::Status foreign = start("192.0.2.1:0").status();
  EXPECT_THAT(foreign.message(), HasSubstr("Cannot assign requested address"));
}

}  // namespace
}  // namespace quire
