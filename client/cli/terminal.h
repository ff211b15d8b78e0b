#ifndef TANDEM_CLIENT_CLI_TERMINAL_H_
#define TANDEM_CLIENT_CLI_TERMINAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace tandem::cli {

// All that a command sees of the outside but the daemon and files: where it writes, how wide that is, what
// time it is, whether Ctrl-C was pressed. Not thread-safe.
class Terminal {
 public:
  virtual ~Terminal() = default;

  // Standard output and standard error.
  virtual void Out(absl::string_view text) = 0;
  virtual void Err(absl::string_view text) = 0;
  // Whether standard output has taken all so far; else the first error, such as a full disk. Nothing is
  // written to it after that.
  virtual absl::Status OutputStatus() const = 0;

  // Whether standard output is a terminal that can go back in a line.
  virtual bool Interactive() const = 0;
  // Whether colours are wanted on standard output: it is interactive and NO_COLOR is not set.
  virtual bool Color() const = 0;
  // Whether it shows Unicode.
  virtual bool Unicode() const = 0;
  // Columns and lines now; 80 and 24 where nothing is known.
  virtual int Width() const = 0;
  virtual int Height() const = 0;

  virtual absl::Time Now() const = 0;
  virtual absl::TimeZone TimeZone() const = 0;

  // Makes the first Ctrl-C (or SIGTERM) from now on be noted rather than end the program; a second one ends
  // it.
  virtual void CatchInterrupt() = 0;
  // Whether one was noted.
  virtual bool Interrupted() const = 0;

  virtual absl::optional<std::string> Environment(const std::string& name) const = 0;
  // Whether the user is root, whose daemon keeps its state elsewhere.
  virtual bool IsRoot() const = 0;
};

// The real one.
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
