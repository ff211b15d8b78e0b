#ifndef TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// How far workers are confined.
enum class SandboxMode {
  kOff,
  // As far as the kernel can.
  kBestEffort,
  // Wholly, or they do not run.
  kOn,
};

// What the daemon tells its workers of it.
struct SandboxOptions {
  SandboxMode mode = SandboxMode::kOff;
  // Folders that all workers may read: where data lies. They may be missing.
  std::vector<std::string> readable;
};

// "off", "best-effort" or "on"; nothing for another text.
inline std::optional<SandboxMode> ParseSandboxMode(absl::string_view text) {
  if (text == "off") return SandboxMode::kOff;
  if (text == "best-effort") return SandboxMode::kBestEffort;
  if (text == "on") return SandboxMode::kOn;
  return std::nullopt;
}

// The reverse.
inline const char* SandboxModeName(SandboxMode mode) {
  return mode == SandboxMode::kOff ? "off" : mode == SandboxMode::kOn ? "on" : "best-effort";
}

// Adds them to a worker's command line.
inline void AddSandboxArguments(const SandboxOptions& options, std::vector<std::string>* arguments) {
  if (options.mode == SandboxMode::kOff) return;
  arguments->insert(arguments->end(), {"--sandbox", SandboxModeName(options.mode)});
  for (const std::string& folder : options.readable) {
    arguments->insert(arguments->end(), {"--may-read", folder});
  }
}

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_
