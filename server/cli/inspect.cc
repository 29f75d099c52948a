#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/base/cgroup_limits.h"
#include "runtime/base/worker_pool.h"
#include "runtime/loader/describe.h"
#include "runtime/loader/model_header.h"
#include "runtime/loader/model_loader.h"
#include "server/cli/commands.h"

namespace quire {
namespace {

struct InspectFlags {
  std::string path;
  bool verify = false;
  DescribeOptions describe;
};

int FailFile(const absl::Status& status) {
  return Fail(kExitConfig, std::string(status.message()));
}

int Inspect(const InspectFlags& flags) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(flags.path);
  if (!file.ok()) return FailFile(file.status());
  const auto header = ReadModelHeader(*file);
  if (!header.ok()) return FailFile(header.status());
  DescribeOptions describe = flags.describe;
  if (flags.verify) {
    WorkerPool pool({.threads = ReadHostLimits().Threads(), .pin = true});
    const absl::StatusOr<LoadedModel> model =
        LoadModel(flags.path, {.pool = &pool, .progress = nullptr});
    if (!model.ok()) return FailFile(model.status());
    describe.sha256 = model->sha256;
  }
  const std::string text = DescribeModel(*file, **header, describe);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? kExitOk : kExitFailed;
}

}  // namespace

int RunInspect(const Args& args) {
  CLI::App app("Describe a model file. Exit 78 if it is not one that Quire can serve.",
               "quire inspect");
  InspectFlags flags;
  app.add_option("FILE", flags.path, "a GGUF file")->required();
  app.add_flag("--tensors", flags.describe.tensors, "list every tensor");
  app.add_flag("--tokenizer", flags.describe.tokenizer, "list the special tokens, count the kinds");
  app.add_flag("--template", flags.describe.chat_template, "print the chat template");
  app.add_flag("--verify", flags.verify, "also load the weights: all finite, SHA-256 of the file");
  app.add_flag("--json", flags.describe.json, "one JSON object");
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return Inspect(flags);
}

}  // namespace quire
