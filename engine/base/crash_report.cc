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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TANDEM_HAS_SANITIZER 1
#endif
#endif
#ifndef TANDEM_HAS_SANITIZER
#define TANDEM_HAS_SANITIZER 0
#endif

namespace tandem {
namespace {

// All of what the handler reads: written before there is a crash.
char report_path[4096] = "";
char report_about[1024] = "";
// Of an exception that nobody caught.
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

// To standard error, too.
void Say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  if (report_fd >= 0) WriteText(text);
}

// "0x" and hexadecimal digits of a fixed number.
void FormatAddress(uintptr_t address, char (&text)[19]) {
  text[0] = '0';
  text[1] = 'x';
  for (int i = 17; i >= 2; --i, address >>= 4) text[i] = "0123456789abcdef"[address & 15];
  text[18] = '\0';
}

// The calls that led here, by the unwind tables that every program has: frame pointers, by which Abseil goes,
// are left out of optimised code. The unwinder may wait for the dynamic loader's lock: then Abseil's alarm
// ends the process, and what was written stays.
void WriteStack() {
  constexpr int kMost = 64;
  void* frames[kMost];
  const int count = backtrace(frames, kMost);
  Say("Stack:\n");
  for (int i = 0; i < count; ++i) {
    char address[19];
    FormatAddress(reinterpret_cast<uintptr_t>(frames[i]), address);
    char name[512];
    // A return address may already be the next function's.
    const bool known = absl::Symbolize(static_cast<char*>(frames[i]) - 1, name, sizeof(name));
    Say("    @ ");
    Say(address);
    Say("  ");
    Say(known ? name : "(unknown)");
    Say("\n");
  }
}

// Where programs and libraries were loaded, for addresses without a symbol.
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

// Gets the report piece by piece, and null at its end. Runs in the signal's handler.
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

// Not in a signal's handler, but memory may be what is missing.
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
  // Says it on standard error, and aborts.
  previous_terminate();
}

}  // namespace

void InstallCrashReports(const char* program) {
  if (TANDEM_HAS_SANITIZER) return;
  absl::InitializeSymbolizer(program);
  // The first call loads what it needs.
  void* frame = nullptr;
  backtrace(&frame, 1);
  struct sigaction terminate = {};
  sigaction(SIGTERM, nullptr, &terminate);
  absl::FailureSignalHandlerOptions options;
  options.writerfn = &WriteReport;
  absl::InstallFailureSignalHandler(options);
  // Being told to end is no crash.
  sigaction(SIGTERM, &terminate, nullptr);
  previous_terminate = std::set_terminate(&NoteException);
}

void SetCrashReportFile(const std::string& path, const std::string& about) {
  if (path.size() >= sizeof(report_path)) return;
  std::snprintf(report_path, sizeof(report_path), "%s", path.c_str());
  std::snprintf(report_about, sizeof(report_about), "%.1000s\n", about.c_str());
}

}  // namespace tandem
