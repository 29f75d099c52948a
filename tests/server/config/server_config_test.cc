#include "server/config/server_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

namespace quire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServerConfigTest : public testing::Test {
 protected:
  std::string File(const std::string& text) {
    const std::string path = testing::TempDir() + "/quire_config_" + std::to_string(files_++) +
                             "_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".json";
    std::ofstream(path) << text;
    paths_.push_back(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& path : paths_) std::filesystem::remove(path);
  }
  static absl::StatusOr<ServerConfig> Parse(std::vector<std::string> flags,
                                            Environment environment = {}) {
    flags.insert(flags.begin(), {"--model", "m.gguf"});
    return ParseServerConfig(flags, environment);
  }
  static void ExpectError(const absl::StatusOr<ServerConfig>& got, int exit_code,
                          const std::string& text) {
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(ExitCodeOf(got.status()), exit_code) << got.status();
    EXPECT_THAT(std::string(got.status().message()), HasSubstr(text));
  }

  int files_ = 0;
  std::vector<std::string> paths_;
};

TEST_F(ServerConfigTest, DefaultsAreThoseOfTheApi) {
  const auto config = Parse({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model, "m.gguf");
  EXPECT_THAT(config->listen, ElementsAre("127.0.0.1:50051"));
  EXPECT_EQ(config->http_listen, "127.0.0.1:8080");
  EXPECT_EQ(config->max_running, 64);
  EXPECT_EQ(config->max_waiting, 256);
  EXPECT_EQ(config->effective_max_calls(), 64 + 256 + 64);
  EXPECT_EQ(config->max_waiting_tokens, 262144);
  EXPECT_EQ(config->max_prompt_bytes, 1 << 20);
  EXPECT_EQ(config->stream_buffer_bytes, 262144);
  EXPECT_EQ(config->drain_delay, absl::ZeroDuration());
  EXPECT_EQ(config->drain_timeout, absl::Seconds(60));
  EXPECT_TRUE(config->reflection_on());
}

TEST_F(ServerConfigTest, FlagBeatsVariableBeatsFileBeatsDefault) {
  const std::string file = File(
      R"({"max_running": 2, "max-waiting": 20, "threads": 7, "listen": ["unix:/a", "127.0.0.1:1"]})");
  const auto config = Parse({"--config", file, "--threads", "3"},
                            {{"QUIRE_THREADS", "5"}, {"QUIRE_MAX_WAITING", "30"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->threads, 3);
  EXPECT_EQ(config->max_waiting, 30);
  EXPECT_EQ(config->max_running, 2);
  EXPECT_EQ(config->max_outputs, 8);
  EXPECT_THAT(config->listen, ElementsAre("unix:/a", "127.0.0.1:1"));
}

TEST_F(ServerConfigTest, TheFileMayBeNamedByVariable) {
  const auto config = Parse({}, {{"QUIRE_CONFIG", File(R"({"threads": 4})")}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->threads, 4);
}

TEST_F(ServerConfigTest, ListsComeFromRepeatedFlagsAndFromCommas) {
  EXPECT_THAT(Parse({"--listen", "127.0.0.1:1", "--listen=unix:/x"})->listen,
              ElementsAre("127.0.0.1:1", "unix:/x"));
  EXPECT_THAT(Parse({}, {{"QUIRE_LISTEN", "127.0.0.1:1,unix:/x"}})->listen,
              ElementsAre("127.0.0.1:1", "unix:/x"));
}

TEST_F(ServerConfigTest, UnitsAreUnderstood) {
  const auto config =
      Parse({"--kv-cache-bytes", "512MiB", "--drain-timeout", "1500ms", "--drain-delay", "5"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kv_cache_bytes, int64_t{512} << 20);
  EXPECT_EQ(config->drain_timeout, absl::Milliseconds(1500));
  EXPECT_EQ(config->drain_delay, absl::Seconds(5));
  EXPECT_EQ(Parse({"--drain-timeout", "2m"})->drain_timeout, absl::Minutes(2));
}

TEST_F(ServerConfigTest, SchedulingHasFlags) {
  const auto defaults = Parse({});
  EXPECT_TRUE(defaults->prefix_cache);
  EXPECT_FALSE(defaults->fcfs);
  EXPECT_FALSE(defaults->deadline_admission);
  const auto config = Parse({"--prefix-cache", "off", "--scheduling", "fcfs", "--ageing-ms", "250",
                             "--target-itl-ms", "40", "--deadline-admission", "--tenant-weights",
                             "gold=4,free-tier=0.5"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->prefix_cache);
  EXPECT_TRUE(config->fcfs);
  EXPECT_EQ(config->ageing_ms, 250);
  EXPECT_EQ(config->target_itl_ms, 40);
  EXPECT_TRUE(config->deadline_admission);
  EXPECT_THAT(config->tenant_weights,
              ElementsAre(TenantWeight{"gold", 4}, TenantWeight{"free-tier", 0.5}));
  EXPECT_THAT(Parse({}, {{"QUIRE_TENANT_WEIGHTS", "a=2,b=3"}})->tenant_weights,
              ElementsAre(TenantWeight{"a", 2}, TenantWeight{"b", 3}));
  for (const char* bad : {"a", "=1", "A=1", "a=0", "a=nan", "a=101", "a=1,a=2", "a=1,"}) {
    ExpectError(Parse({"--tenant-weights", bad}), 64, "--tenant-weights");
  }
}

TEST_F(ServerConfigTest, BadFlagsAreUsageErrors) {
  ExpectError(Parse({"--threads", "many"}), 64, "--threads: got 'many', wanted integer 0..1024");
  ExpectError(Parse({"--threads", "-1"}), 64, "--threads");
  ExpectError(Parse({"--threads", "1.5"}), 64, "--threads");
  ExpectError(Parse({"--max-running", "0"}), 64, "1..4096");
  ExpectError(Parse({"--kv-cache-bytes", "99999999999GiB"}), 64, "--kv-cache-bytes");
  ExpectError(Parse({"--kv-dtype", "f16"}), 64, "auto|f32|bf16|int8|int16");
  ExpectError(Parse({"--listen", "nonsense"}), 64, "--listen");
  ExpectError(Parse({"--listen", "127.0.0.1:65536"}), 64, "--listen");
  ExpectError(Parse({"--http-listen", "unix:/x"}), 64, "--http-listen");
  ExpectError(Parse({"--drain-timeout", "soon"}), 64, "--drain-timeout");
  ExpectError(Parse({"--no-such-flag"}), 64, "no-such-flag");
  ExpectError(Parse({"--threads", "1", "--threads", "2"}), 64, "threads");
  ExpectError(Parse({"stray"}), 64, "stray");
}

TEST_F(ServerConfigTest, BadVariablesAreConfigurationErrorsEvenUnderAGoodFlag) {
  ExpectError(Parse({}, {{"QUIRE_THREADS", "x"}}), 78, "QUIRE_THREADS: got 'x'");
  ExpectError(Parse({"--threads", "2"}, {{"QUIRE_THREADS", "x"}}), 78, "QUIRE_THREADS");
  ExpectError(Parse({}, {{"QUIRE_NO_SUCH", "1"}}), 78, "unknown variable QUIRE_NO_SUCH");
  ExpectError(Parse({}, {{"QUIRE_TRUSTED_NETWORK", "yes"}}), 78, "true or false");
}

TEST_F(ServerConfigTest, VariablesThatKubernetesInjectsAreIgnored) {
  const auto config = Parse({}, {{"QUIRE_SERVICE_HOST", "10.0.0.1"},
                                 {"QUIRE_PORT", "tcp://10.0.0.1:1"},
                                 {"QUIRE_PORT_50051_TCP", "x"},
                                 {"QUIRE_THREADS", ""}});
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST_F(ServerConfigTest, BadFilesAreConfigurationErrors) {
  ExpectError(Parse({"--config", "/no/such/file"}), 78, "cannot read");
  ExpectError(Parse({"--config", File("{")}), 78, "not JSON");
  ExpectError(Parse({"--config", File("[1]")}), 78, "wanted an object");
  ExpectError(Parse({"--config", File(R"({"thread": 1})")}), 78, "unknown key thread");
  ExpectError(Parse({"--config", File(R"({"threads": 1, "threads": 2})")}), 78, "given twice");
  ExpectError(Parse({"--config", File(R"({"threads": [1, 2]})")}), 78, "2 values");
  ExpectError(Parse({"--config", File(R"({"threads": {"a": 1}})")}), 78, "wanted a value");
  ExpectError(Parse({"--config", File(R"({"threads": null})")}), 78, "wanted a value");
  ExpectError(Parse({"--config", File(R"({"threads": 1e3})")}), 78, "wanted integer");
  ExpectError(Parse({"--config", File(std::string(200'000, '['))}), 78, "not JSON");
  ExpectError(Parse({"--config", File(std::string((1 << 20) + 1, ' '))}), 78, "larger than");
}

TEST_F(ServerConfigTest, AListenerThatOthersCanReachNeedsATrustedNetwork) {
  ExpectError(Parse({"--listen", "0.0.0.0:50051"}), 78, "--trusted-network");
  ExpectError(Parse({"--listen", "127.0.0.1:1", "--listen", "[::]:50051"}), 78, "[::]:50051");
  EXPECT_TRUE(Parse({"--listen", "0.0.0.0:50051", "--trusted-network"}).ok());
  EXPECT_TRUE(
      Parse({}, {{"QUIRE_LISTEN", "0.0.0.0:50051"}, {"QUIRE_TRUSTED_NETWORK", "true"}}).ok());
  EXPECT_FALSE(Parse({"--listen", "0.0.0.0:1", "--trusted-network"})->reflection_on());
  EXPECT_TRUE(
      Parse({"--listen", "0.0.0.0:1", "--trusted-network", "--reflection=on"})->reflection_on());
}

TEST_F(ServerConfigTest, KnowsPrivateListeners) {
  for (const char* address :
       {"unix:/tmp/s", "127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"}) {
    EXPECT_TRUE(IsPrivateListener(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.org:1", "localhost.example:1", "x"}) {
    EXPECT_FALSE(IsPrivateListener(address)) << address;
  }
}

TEST_F(ServerConfigTest, AModelIsRequired) {
  ExpectError(ParseServerConfig({}, {}), 78, "--model");
}

TEST_F(ServerConfigTest, PrintShowsValueAndSource) {
  ConfigFlags flags;
  CLI::App app;
  flags.AddTo(app);
  app.parse("--max-running 3 --print-config");
  EXPECT_TRUE(flags.print_config());
  const std::string text = *flags.Print({{"QUIRE_THREADS", "2"}});
  EXPECT_THAT(text, HasSubstr("max-running = 3  (--max-running)\n"));
  EXPECT_THAT(text, HasSubstr("threads = 2  (QUIRE_THREADS)\n"));
  EXPECT_THAT(text, HasSubstr("max-waiting = 256  (default)\n"));
  EXPECT_THAT(text, HasSubstr("model =   (default)\n")) << "what is missing is shown as missing";
  EXPECT_FALSE(flags.Print({{"QUIRE_THREADS", "two"}}).ok()) << "nothing that would not be so";
}

TEST_F(ServerConfigTest, HelpNamesDefaultRangeAndVariable) {
  ConfigFlags flags;
  CLI::App app;
  flags.AddTo(app);
  const std::string help = app.help();
  EXPECT_THAT(help, HasSubstr("--max-running"));
  EXPECT_THAT(help, HasSubstr("QUIRE_MAX_RUNNING"));
  EXPECT_THAT(help, HasSubstr("1..4096"));
}

}  // namespace
}  // namespace quire
