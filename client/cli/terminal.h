#ifndef TANDEM_CLIENT_CLI_TERMINAL_H_
#define TANDEM_CLIENT_CLI_TERMINAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace tandem::cli {

// A command's access to its terminal, the time, the environment and signals. Everything outside the program
// except the daemon and files. Not thread-safe.
class Terminal {
 public:
  virtual ~Terminal() = default;

  // Standard output and standard error.
  virtual void Out(absl::string_view text) = 0;
  virtual void Err(absl::string_view text) = 0;
  // Returns whether standard output has taken all output so far, or the first error, such as a full disk.
  // After an error, standard output gets no more output.
  virtual absl::Status OutputStatus() const = 0;

  // Returns whether standard output is a terminal that can redraw lines.
  virtual bool Interactive() const = 0;
  // Returns whether standard output takes colours: it is interactive and NO_COLOR is not set.
  virtual bool Color() const = 0;
  // Returns whether the terminal shows Unicode.
  virtual bool Unicode() const = 0;
  // Returns the present number of columns and lines, or 80 and 24 if unknown.
  virtual int Width() const = 0;
  virtual int Height() const = 0;

  virtual absl::Time Now() const = 0;
  virtual absl::TimeZone TimeZone() const = 0;

  // From now on, records the first Ctrl-C (or SIGTERM) instead of ending the program. The second ends the
  // program.
  virtual void CatchInterrupt() = 0;
  // Returns whether a Ctrl-C was recorded.
  virtual bool Interrupted() const = 0;

  virtual absl::optional<std::string> Environment(const std::string& name) const = 0;
  // Returns whether the user is root. Root's daemon has another default state folder.
  virtual bool IsRoot() const = 0;
};

// The program's own terminal.
class SystemTerminal : public Terminal {
 public:
  SystemTerminal();

  void Out(absl::string_view text) override;
  void Err(absl::string_view text) override;
  absl::Status OutputStatus() const override { return output_status_; }
  bool Interactive() const override { return interactive_; }
  bool Color() const override;
  bool Unicode() const override;
  int Width() const override;
  int Height() const override;
  absl::Time Now() const override;
  absl::TimeZone TimeZone() const override;
  void CatchInterrupt() override;
  bool Interrupted() const override;
  absl::optional<std::string> Environment(const std::string& name) const override;
  bool IsRoot() const override;

 private:
  bool interactive_;
  absl::Status output_status_;
};

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TERMINAL_H_
