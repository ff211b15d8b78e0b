#include "engine/base/crash_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"
#include "engine/base/sanitizer_build.h"

namespace tandem {
namespace {

// All data that the handler reads. It is written before a crash.
char report_path[4096] = "";
char report_about[1024] = "";
// The description of an uncaught exception.
char report_cause[1024] = "";
int report_fd = -1;

std::terminate_handler previous_terminate = nullptr;

void WriteAll(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(report_fd, data, size);
    if (written <= 0) return;
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void WriteText(const char* text) { WriteAll(text, strlen(text)); }

// Writes `text` to standard error and, if open, to the report.
void Say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  if (report_fd >= 0) WriteText(text);
}

// Writes `address` as "0x" and 16 hexadecimal digits.
void FormatAddress(uintptr_t address, char (&text)[19]) {
  text[0] = '0';
  text[1] = 'x';
  for (int i = 17; i >= 2; --i, address >>= 4) text[i] = "0123456789abcdef"[address & 15];
  text[18] = '\0';
}

// Writes the stack of this thread. It follows the unwind tables, which every program has. Abseil follows
// frame pointers, which optimised code leaves out. The unwinder may wait for the dynamic loader's lock. In
// this case Abseil's alarm ends the process, and the earlier parts of the report remain.
void WriteStack() {
  constexpr int kMost = 64;
  void* frames[kMost];
  const int count = backtrace(frames, kMost);
  Say("Stack:\n");
  for (int i = 0; i < count; ++i) {
    char address[19];
    FormatAddress(reinterpret_cast<uintptr_t>(frames[i]), address);
    char name[512];
    // A return address may already belong to the next function.
    const bool known = absl::Symbolize(static_cast<char*>(frames[i]) - 1, name, sizeof(name));
    Say("    @ ");
    Say(address);
    Say("  ");
    Say(known ? name : "(unknown)");
    Say("\n");
  }
}

// Writes the addresses of loaded programs and libraries, for addresses without a symbol.
void WriteMappings() {
  constexpr size_t kMost = size_t{128} << 10;
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  WriteText("\nMemory mappings:\n");
  char buffer[4096];
  size_t total = 0;
  ssize_t got;
  while (total < kMost && (got = read(maps, buffer, sizeof(buffer))) > 0) {
    WriteAll(buffer, static_cast<size_t>(got));
    total += static_cast<size_t>(got);
  }
  close(maps);
}

// Writes a piece of the report. A null piece ends the report. Runs in the signal handler.
void WriteReport(const char* piece) {
  if (report_path[0] != '\0' && report_fd < 0) {
    report_fd = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (report_fd >= 0) {
      WriteText(report_about);
      if (report_cause[0] != '\0') {
        WriteText(report_cause);
        WriteText("\n");
      }
    }
  }
  if (piece != nullptr) {
    if (report_fd >= 0) WriteText(piece);
    return;
  }
  if (report_fd >= 0) fsync(report_fd);
  WriteStack();
  if (report_fd < 0) return;
  WriteMappings();
  fsync(report_fd);
}

// Runs outside a signal handler, but the process may be out of memory.
void NoteException() {
  if (const std::exception_ptr exception = std::current_exception(); exception != nullptr) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      std::snprintf(report_cause, sizeof(report_cause), "Uncaught exception: %s", error.what());
    } catch (...) {
      std::snprintf(report_cause, sizeof(report_cause), "Uncaught exception of another kind");
    }
  }
  // Writes the exception to standard error, and aborts.
  previous_terminate();
}

}  // namespace

void InstallCrashReports(const char* program) {
  if (kSanitizerBuild) return;
  absl::InitializeSymbolizer(program);
  // The first call loads the unwinder, which allocates memory.
  void* frame = nullptr;
  backtrace(&frame, 1);
  struct sigaction terminate = {};
  sigaction(SIGTERM, nullptr, &terminate);
  absl::FailureSignalHandlerOptions options;
  options.writerfn = &WriteReport;
  absl::InstallFailureSignalHandler(options);
  // SIGTERM is no crash: restore its handler.
  sigaction(SIGTERM, &terminate, nullptr);
  previous_terminate = std::set_terminate(&NoteException);
}

void SetCrashReportFile(const std::string& path, const std::string& about) {
  if (path.size() >= sizeof(report_path)) return;
  std::snprintf(report_path, sizeof(report_path), "%s", path.c_str());
  std::snprintf(report_about, sizeof(report_about), "%.1000s\n", about.c_str());
}

}  // namespace tandem
