// The HTTP port for scrapers and probes: /metrics, /metrics/load, /livez, /readyz, /startupz. A few
// threads of its own; reads snapshots only. Start and Stop from one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct HealthReport {
  bool live = true;      // false once the watchdog has given up
  bool started = false;  // warm-up is over
  bool ready = false;    // SERVING
  std::string why{};     // if not ready: "loading", "draining", "stalled", "faulty"
};

struct ExposerOptions {
  std::string listen = "127.0.0.1:8080";  // host:port; port 0: any
  std::function<HealthReport()> health{};
  std::function<std::string()> metrics{}, load{};  // bodies; "" until there is something to scrape
};

class Exposer {
 public:
  // UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(ExposerOptions options);
  ~Exposer();  // closes the port
  int port() const;

 private:
  struct Impl;
  explicit Exposer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
