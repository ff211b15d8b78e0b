#include "server/workers/worker_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

TEST(WorkerLogTest, ReturnsTheLastLineBeforeACrash) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/worker.log";
  EXPECT_EQ(LastLogLine(path), "");
  std::ofstream(path) << std::string(100'000, 'x') << "\nfirst\nl\tast\n\n";
  EXPECT_EQ(LastLogLine(path), "l?ast");
  std::ofstream(path, std::ios::app) << "*** SIGSEGV\n  stack\n";
  EXPECT_EQ(LastLogLine(path), "l?ast");
}

// A read of the pipe would block the daemon for ever.
TEST(WorkerLogTest, APipeInTheLogsPlaceHasNoLine) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/worker.log";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(LastLogLine(path), "");
}

}  // namespace
}  // namespace tandem
