#ifndef TANDEM_ENGINE_BASE_COMMAND_H_
#define TANDEM_ENGINE_BASE_COMMAND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tandem {

// A program to run.
struct Command {
  // A path, or a name to find in `path`.
  std::string program;
  // Without the program's name.
  std::vector<std::string> arguments;
  // The whole environment, as "NAME=value".
  std::vector<std::string> environment;
  // Folders with a colon between them, as in PATH. Used if `program` has no slash.
  std::string path;
  // After this time, the program and its children are killed.
  absl::Duration time_limit = absl::Seconds(30);
  // The program is killed if stdout or stderr has more bytes.
  size_t most_output = size_t{16} << 20;
  // The program's standard input.
  std::string input;
};

struct CommandResult {
  // The exit code, or 128 plus the signal that ended the program.
  int exit_code = 0;
  std::string standard_output;
  std::string standard_error;
};

// Runs a program in a session of its own, and waits for its end. Thread-safe.
// NOT_FOUND if no such program exists. DEADLINE_EXCEEDED after the time limit. RESOURCE_EXHAUSTED if the
// output is too long. UNAVAILABLE if the program cannot be started.
absl::StatusOr<CommandResult> RunCommand(const Command& command);

// Returns the text as one word of a POSIX shell. `text` has no NUL.
std::string ShellQuote(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_COMMAND_H_
