#ifndef TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// The degree of confinement of workers.
enum class SandboxMode {
  kOff,
  // As far as the kernel can.
  kBestEffort,
  // Completely; otherwise workers do not run.
  kOn,
};

// The daemon's sandbox options for its workers.
struct SandboxOptions {
  SandboxMode mode = SandboxMode::kOff;
  // Folders that all workers may read: the data folders. They may be missing.
  std::vector<std::string> readable;
};

// Parses "off", "best-effort" or "on"; nullopt for other text.
inline std::optional<SandboxMode> ParseSandboxMode(absl::string_view text) {
  if (text == "off") return SandboxMode::kOff;
  if (text == "best-effort") return SandboxMode::kBestEffort;
  if (text == "on") return SandboxMode::kOn;
  return std::nullopt;
}

// Returns the text of a mode.
inline const char* SandboxModeName(SandboxMode mode) {
  return mode == SandboxMode::kOff ? "off" : mode == SandboxMode::kOn ? "on" : "best-effort";
}

// Adds the options to a worker's command line.
inline void AddSandboxArguments(const SandboxOptions& options, std::vector<std::string>* arguments) {
  if (options.mode == SandboxMode::kOff) return;
  arguments->insert(arguments->end(), {"--sandbox", SandboxModeName(options.mode)});
  for (const std::string& folder : options.readable) {
    arguments->insert(arguments->end(), {"--may-read", folder});
  }
}

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_OPTIONS_H_
