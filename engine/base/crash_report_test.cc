#include "engine/base/crash_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace tandem {
namespace {

using ::testing::HasSubstr;

#if !defined(TANDEM_ASAN) && !defined(TANDEM_TSAN)

class CrashReportTest : public testing::Test {
 protected:
  CrashReportTest() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    path_ = testing::TempDir() + "/crash-" + testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".txt";
  }
  // The child of a death test also runs this and must not remove the child's report.
  void Prepare() {
    InstallCrashReports("/proc/self/exe");
    SetCrashReportFile(path_, "a program, version 1.2.3\nat work");
  }
  std::string Report() {
    std::ifstream file(path_);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    struct stat info = {};
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    unlink(path_.c_str());
    return text;
  }

  std::string path_;
};

// Raises the signal directly, because a sanitizer would report a bad address itself.
__attribute__((noinline)) void CrashHere() {
  raise(SIGSEGV);
  // A statement after the call keeps the compiler from making a tail call.
  [[maybe_unused]] volatile int after = 0;
}

TEST_F(CrashReportTest, TheStackIsInTheFile) {
  EXPECT_EXIT((Prepare(), CrashHere()), testing::KilledBySignal(SIGSEGV), "SIGSEGV received");
  const std::string report = Report();
  EXPECT_THAT(report, testing::StartsWith("a program, version 1.2.3\nat work\n"));
  EXPECT_THAT(report, HasSubstr("*** SIGSEGV received"));
  EXPECT_THAT(report, HasSubstr("CrashHere"));
  EXPECT_THAT(report, HasSubstr("Memory mappings:\n"));
}

TEST_F(CrashReportTest, AnUncaughtExceptionOfAThread) {
  EXPECT_EXIT((Prepare(), std::thread([] { throw std::runtime_error("no such thing"); }).join()),
              testing::KilledBySignal(SIGABRT), "no such thing");
  const std::string report = Report();
  EXPECT_THAT(report, HasSubstr("Uncaught exception: no such thing\n"));
  EXPECT_THAT(report, HasSubstr("*** SIGABRT received"));
}

TEST_F(CrashReportTest, BeingToldToEndIsNoCrash) {
  EXPECT_EXIT((Prepare(), raise(SIGTERM)), testing::KilledBySignal(SIGTERM), "^$");
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(CrashReportTest, WithoutAFileItIsSaidAllTheSame) {
  EXPECT_EXIT((InstallCrashReports("/proc/self/exe"), abort()), testing::KilledBySignal(SIGABRT),
              "SIGABRT received");
}

#endif

}  // namespace
}  // namespace tandem
