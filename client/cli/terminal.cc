#include "client/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"

namespace tandem::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void NoteInterrupt(int) { interrupted.store(true); }

absl::Status WriteAll(int file, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "cannot write the output");
    text.remove_prefix(count);
  }
  return absl::OkStatus();
}

winsize WindowSize() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

}  // namespace

SystemTerminal::SystemTerminal() {
  const absl::optional<std::string> type = Environment("TERM");
  interactive_ = isatty(STDOUT_FILENO) == 1 && (!type.has_value() || *type != "dumb");
}

void SystemTerminal::Out(absl::string_view text) {
  if (output_status_.ok()) output_status_ = WriteAll(STDOUT_FILENO, text);
}

void SystemTerminal::Err(absl::string_view text) {
  // If standard error fails, there is no place to report it.
  WriteAll(STDERR_FILENO, text).IgnoreError();
}

bool SystemTerminal::Color() const {
  const absl::optional<std::string> no_color = Environment("NO_COLOR");
  return interactive_ && (!no_color.has_value() || no_color->empty());
}

bool SystemTerminal::Unicode() const {
  if (const auto type = Environment("TERM"); type.has_value() && *type == "linux") return false;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const absl::optional<std::string> value = Environment(variable);
    if (!value.has_value() || value->empty()) continue;
    const std::string locale = absl::AsciiStrToLower(*value);
    // Containers mostly have no locale, "C" or "POSIX", and their users have terminals that show UTF-8.
    return locale == "c" || locale == "posix" || absl::StrContains(locale, "utf-8") ||
           absl::StrContains(locale, "utf8") || !absl::StrContains(locale, ".");
  }
  return true;
}

int SystemTerminal::Width() const {
  if (const winsize size = WindowSize(); size.ws_col > 0) return size.ws_col;
  int columns = 0;
  const absl::optional<std::string> variable = Environment("COLUMNS");
  return variable.has_value() && absl::SimpleAtoi(*variable, &columns) && columns > 0 ? columns : 80;
}

int SystemTerminal::Height() const {
  const winsize size = WindowSize();
  return size.ws_row > 0 ? size.ws_row : 24;
}

absl::Time SystemTerminal::Now() const { return absl::Now(); }

absl::TimeZone SystemTerminal::TimeZone() const { return absl::LocalTimeZone(); }

void SystemTerminal::CatchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = NoteInterrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool SystemTerminal::Interrupted() const { return interrupted.load(); }

absl::optional<std::string> SystemTerminal::Environment(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return absl::nullopt;
  return std::string(value);
}

bool SystemTerminal::IsRoot() const { return geteuid() == 0; }

}  // namespace tandem::cli
