#ifndef TANDEM_ENGINE_BASE_CRASH_REPORT_H_
#define TANDEM_ENGINE_BASE_CRASH_REPORT_H_

#include <string>

namespace tandem {

// Crash reports. InstallCrashReports handles SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGBUS and SIGTRAP. An
// uncaught exception and a failed assertion end in SIGABRT. The handler writes the stack of the failing
// thread to standard error and, if SetCrashReportFile was called, to the file. Then the process ends by the
// same signal, with a core dump if the system keeps them. The handler allocates no memory. Only writing the
// stack, the last part on standard error, may take a lock. If the lock blocks the process, the process ends
// after three seconds.

// Installs the handlers. Call it a single time, early. `program` is argv[0], the source of the symbols. Does
// nothing in a program with a sanitizer, because the sanitizer reports crashes itself.
void InstallCrashReports(const char* program);

// Sets the file of the report. A crash creates the file, readable by its owner alone, or appends to it. The
// report begins with `about`, for example the program's version and current job. `about` is cut after 1000
// characters. Does nothing if `path` has 4096 or more characters. Never call it from two threads at once.
void SetCrashReportFile(const std::string& path, const std::string& about);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_CRASH_REPORT_H_
