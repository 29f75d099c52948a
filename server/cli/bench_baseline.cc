#include "server/cli/bench_baseline.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

extern char** environ;

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(n));
  return text;
}

// Standard output of a program that ends with 0.
absl::StatusOr<std::string> OutputOf(const std::string& program, const Args& args) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t pid;
  const int error = posix_spawnp(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string text = error == 0 ? ReadAll(ends[0]) : "";
  close(ends[0]);
  int status = 0;
  if (error == 0) waitpid(pid, &status, 0);
  if (error != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("--baseline: ", program, " bench failed"));
  }
  return text;
}

absl::StatusOr<Json> BenchOf(const std::string& program, const Args& args) {
  ASSIGN_OR_RETURN(std::string text, OutputOf(program, args));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  Json json = Json::parse(line == std::string::npos ? text : text.substr(line + 1), nullptr, false);
  if (!json.is_object()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--baseline: ", program, " printed no result"));
  }
  return json;
}

// Tokens per second by case: "prefill", "decode 1", "decode 8" ..
std::map<std::string, double> SpeedsOf(const Json& result) {
  std::map<std::string, double> speeds;
  const auto take = [&](const std::string& name, const Json& value) {
    if (value.is_number() && value.get<double>() > 0) speeds[name] = value.get<double>();
  };
  take("prefill", result.value("prefill_tps", Json()));
  const Json decode = result.value("decode_tps", Json::object());
  for (const auto& [batch, tps] : decode.items()) take("decode " + batch, tps);
  return speeds;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

absl::StatusOr<BaselineVerdict> CompareWithBaseline(const BaselineOptions& options,
                                                    const Args& bench_args) {
  Args args = {"bench"};
  args.insert(args.end(), bench_args.begin(), bench_args.end());
  std::map<std::string, std::vector<double>> ratios;
  Json ours;
  for (int32_t round = 0; round < options.rounds; ++round) {
    // Whoever comes second finds another machine: the order alternates.
    Json theirs;
    for (const bool other : {round % 2 == 0, round % 2 != 0}) {
      ASSIGN_OR_RETURN((other ? theirs : ours),
                       BenchOf(other ? options.other : "/proc/self/exe", args));
    }
    const std::map<std::string, double> base = SpeedsOf(theirs);
    for (const auto& [name, speed] : SpeedsOf(ours)) {
      if (const auto it = base.find(name); it != base.end())
        ratios[name].push_back(speed / it->second);
    }
  }
  if (ratios.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--baseline: no case in common with ", options.other));
  }
  Json report = {{"other", options.other}, {"tolerance", options.tolerance}};
  double worst = 1e300;
  for (const auto& [name, values] : ratios) {
    const double ratio = Median(values);
    report["ratio"][name] = ratio;
    worst = std::min(worst, ratio);
    std::fprintf(stderr, "bench: %s: %.3f of the baseline's speed\n", name.c_str(), ratio);
  }
  report["worst_ratio"] = worst;
  ours["baseline"] = report;
  return BaselineVerdict{.json = ours.dump(), .worst_ratio = worst};
}

}  // namespace quire
