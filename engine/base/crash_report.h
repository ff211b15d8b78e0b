#ifndef TANDEM_ENGINE_BASE_CRASH_REPORT_H_
#define TANDEM_ENGINE_BASE_CRASH_REPORT_H_

#include <string>

namespace tandem {

// What a crash leaves behind. From InstallCrashReports on, a signal that says so (SIGSEGV, SIGILL, SIGFPE,
// SIGABRT, SIGBUS, SIGTRAP; an uncaught exception and a failed assertion end in SIGABRT) has the stack of its
// thread written to standard error, and to a file where one is set. Then the process ends as it would have:
// by that signal, with a core where the system keeps them. The handler takes no memory, and no lock but for
// the stack, which comes after the rest: a process that waits for one is ended after three seconds.

// Call once, early. `program`: argv[0], in which symbols are looked up. Does nothing where the program was
// built with a sanitizer, which reports crashes by itself.
void InstallCrashReports(const char* program);

// Where the report goes; the file is made when there is one, for its owner alone, and a second report is
// appended. `about` stands in its first lines, such as the program's version and what it was at. Paths of
// 4095 characters and above, and what is beyond 1000 characters of `about`, are left out. Not from two
// threads at once.
void SetCrashReportFile(const std::string& path, const std::string& about);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_CRASH_REPORT_H_
