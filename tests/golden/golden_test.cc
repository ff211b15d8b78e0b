// Runs golden cases on the backends: by default those of tests/golden/data, which must all pass.
//
//   golden_test [--dir=FOLDER] [--backend=reference|cpu|cpu-bfloat16|gpu|gpu-bfloat16|gpu-float16]
//   [--case=KIND/NAME]
//
// With --dir, cases of types and settings that the engine does not offer are counted and named, but do not
// fail. A case that the engine offers and this program does not understand fails.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/gpu_backends.h"
#include "tests/golden/runner.h"

namespace tandem {
namespace {

constexpr absl::string_view kOwnCases = "tests/golden/data";

struct Flags {
  std::string dir = std::string(kOwnCases);
  std::string backend;      // Empty: all.
  std::string golden_case;  // Empty: all.
};

std::vector<GoldenBackend> Backends() {
  std::vector<GoldenBackend> backends = {
      {"reference", [](int) { return CreateReferenceDevice(); }, 1e-10},
      {"cpu", [](int) { return std::make_unique<CpuDevice>("cpu:0", 1); }, 1e-4},
  };
  if (CpuDevice::OffersBFloat16()) {
    backends.push_back({"cpu-bfloat16",
                        [](int) { return std::make_unique<CpuDevice>("cpu:0", 1, DType::kBFloat16); }, 2e-2,
                        true});
  }
  for (GoldenBackend& backend : GpuBackends()) backends.push_back(std::move(backend));
  return backends;
}

// "KIND/NAME" of a file, as --case takes it.
std::string CaseName(const std::filesystem::path& path) {
  return absl::StrCat(path.parent_path().filename().string(), "/", path.stem().string());
}

class GoldenTest : public testing::Test {
 public:
  GoldenTest(const Flags& flags, std::string path, GoldenBackend backend)
      : flags_(flags), path_(std::move(path)), backend_(std::move(backend)) {}

  void TestBody() override {
    const std::string repeat =
        absl::StrCat("repeat with: bazel run //tests/golden:golden_test -- ",
                     flags_.dir == kOwnCases ? "" : absl::StrCat("--dir=", flags_.dir, " "),
                     "--backend=", backend_.name, " --case=", CaseName(path_));
    const absl::StatusOr<GoldenCase> golden = LoadGoldenCase(path_);
    ASSERT_TRUE(golden.ok()) << golden.status() << "\n" << repeat;
    GoldenReport report(backend_.tolerance);
    const absl::Status status = RunGoldenCase(*golden, backend_, report);
    if (absl::IsUnimplemented(status) && flags_.dir != kOwnCases) {
      std::cout << "NOT OFFERED " << CaseName(path_) << ": " << status.message() << std::endl;
      return;
    }
    EXPECT_TRUE(status.ok()) << status << "\n" << repeat;
    for (const std::string& failure : report.failures()) ADD_FAILURE() << failure << "\n" << repeat;
    EXPECT_TRUE(!status.ok() || report.compared() > 0) << "nothing was compared\n" << repeat;
  }

 private:
  const Flags& flags_;
  const std::string path_;
  const GoldenBackend backend_;
};

// Returns how many tests there are.
int Register(const Flags& flags) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(flags.dir, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") paths.push_back(entry->path());
  }
  if (error) {
    std::cerr << "cannot read " << flags.dir << ": " << error.message() << std::endl;
    return 0;
  }
  std::sort(paths.begin(), paths.end());
  int count = 0;
  for (const GoldenBackend& backend : Backends()) {
    if (!flags.backend.empty() && flags.backend != backend.name) continue;
    for (const std::filesystem::path& path : paths) {
      const std::string name = CaseName(path);
      if (!flags.golden_case.empty() && flags.golden_case != name) continue;
      const std::string kind = path.parent_path().filename().string();
      if (backend.narrow && kind != "op" && kind != "loss" && kind != "network") continue;
      testing::RegisterTest(absl::StrCat("Golden_", backend.name).c_str(), name.c_str(), nullptr, nullptr,
                            __FILE__, __LINE__, [&flags, path, backend]() -> testing::Test* {
                              return new GoldenTest(flags, path.string(), backend);
                            });
      ++count;
    }
  }
  return count;
}

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  static Flags flags;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--dir=")) {
      flags.dir = std::string(absl::StripSuffix(argument, "/"));
    } else if (absl::ConsumePrefix(&argument, "--backend=")) {
      flags.backend = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--case=")) {
      flags.golden_case = std::string(argument);
    } else {
      std::cerr << "unknown argument " << argument << "; usage: golden_test [--dir=FOLDER] "
                << "[--backend=reference|cpu|cpu-bfloat16|gpu|gpu-bfloat16|gpu-float16] [--case=KIND/NAME]"
                << std::endl;
      return 2;
    }
  }
  if (Register(flags) == 0) {
    std::cerr << "there are no such cases" << std::endl;
    return 2;
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
