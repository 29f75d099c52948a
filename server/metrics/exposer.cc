#include "server/metrics/exposer.h"

#include <CivetServer.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

// CivetServer throws when it cannot bind; that stays here. Handlers run on its threads.
namespace quire {
namespace {

struct Reply {
  int code = 200;
  std::string body;
};

void Send(mg_connection* connection, const Reply& reply, const char* type, bool with_body) {
  const char* reason = reply.code == 200 ? "OK" : "Service Unavailable";
  mg_printf(
      connection,
      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
      "Connection: close\r\n\r\n",
      reply.code, reason, type, reply.body.size());
  if (with_body && !reply.body.empty()) mg_write(connection, reply.body.data(), reply.body.size());
}

class Page final : public CivetHandler {
 public:
  Page(std::function<Reply()> make, const char* type) : make_(std::move(make)), type_(type) {}
  bool handleGet(CivetServer*, mg_connection* connection) override {
    return Answer(connection, true);
  }
  bool handleHead(CivetServer*, mg_connection* connection) override {
    return Answer(connection, false);
  }
  bool handlePost(CivetServer*, mg_connection* connection) override { return Refuse(connection); }
  bool handlePut(CivetServer*, mg_connection* connection) override { return Refuse(connection); }
  bool handleDelete(CivetServer*, mg_connection* connection) override { return Refuse(connection); }
  bool handlePatch(CivetServer*, mg_connection* connection) override { return Refuse(connection); }
  bool handleOptions(CivetServer*, mg_connection* connection) override {
    return Refuse(connection);
  }
  void set_path(std::string path) { path_ = std::move(path); }

 private:
  static bool Refuse(mg_connection* connection) {
    mg_printf(connection,
              "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\n"
              "Connection: close\r\n\r\n");
    return true;
  }
  bool Answer(mg_connection* connection, bool with_body) {
    // "/metrics" would also match "/metrics/anything".
    const std::string path = mg_get_request_info(connection)->local_uri;
    if (path != path_) {
      mg_send_http_error(connection, 404, "%s", "");
      return true;
    }
    Send(connection, make_(), type_, with_body);
    return true;
  }

  std::function<Reply()> make_;
  const char* type_;
  std::string path_;
};

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";

Reply YesOrWhy(bool yes, const std::string& why) {
  return yes ? Reply{200, "ok\n"} : Reply{503, absl::StrCat(why.empty() ? "no" : why, "\n")};
}

std::string CivetAddress(const std::string& listen) {
  // Civetweb takes "port" for all IPv4 addresses and "host:port" with a numeric host.
  return listen.starts_with("localhost:") ? absl::StrCat("127.0.0.1:", listen.substr(10)) : listen;
}

}  // namespace

struct Exposer::Impl {
  std::vector<std::unique_ptr<Page>> pages;  // outlive the server
  std::unique_ptr<CivetServer> server;

  void Add(const std::string& path, std::function<Reply()> make, const char* type = kPlain) {
    pages.push_back(std::make_unique<Page>(std::move(make), type));
    pages.back()->set_path(path);
    server->addHandler(path, pages.back().get());
  }
};

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(ExposerOptions options) {
  auto impl = std::make_unique<Impl>();
  // A client that sends half a request holds a thread until the time-out: with so many, a probe
  // gets its turn before a kubelet gives up.
  const std::vector<std::string> settings = {"listening_ports",
                                             CivetAddress(options.listen),
                                             "num_threads",
                                             "8",
                                             "request_timeout_ms",
                                             "2000",
                                             "enable_keep_alive",
                                             "no",
                                             "enable_directory_listing",
                                             "no"};
  try {
    impl->server = std::make_unique<CivetServer>(settings);
  } catch (const CivetException&) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.listen, " for HTTP"));
  }
  const auto health = options.health ? options.health : [] { return HealthReport{}; };
  impl->Add("/livez", [health] { return YesOrWhy(health().live, "stalled"); });
  impl->Add("/startupz", [health] { return YesOrWhy(health().started, "loading"); });
  impl->Add("/readyz", [health] {
    const HealthReport report = health();
    return YesOrWhy(report.ready, report.why);
  });
  const auto text = [](std::function<std::string()> make) {
    return [make = std::move(make)] { return Reply{200, make ? make() : std::string()}; };
  };
  impl->Add("/metrics", text(options.metrics), kExposition);
  impl->Add("/metrics/load", text(options.load), kExposition);
  return std::unique_ptr<Exposer>(new Exposer(std::move(impl)));
}

Exposer::Exposer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Exposer::~Exposer() {
  if (impl_->server) impl_->server->close();
}

int Exposer::port() const {
  const std::vector<int> ports = impl_->server->getListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace quire
