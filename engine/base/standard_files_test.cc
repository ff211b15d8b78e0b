#include "engine/base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(StandardFilesTest, AClosedDescriptorIsNoOtherFiles) {
  // In this order, each copy gets a number above 2.
  std::array<int, 3> saved;
  for (int i = 0; i < 3; ++i) saved[i] = fcntl(i, F_DUPFD, 3);
  for (int i = 0; i < 3; ++i) close(i);
  OpenClosedStandardFiles();
  char byte = 0;
  const bool reads = read(0, &byte, 1) != -1 || errno != EBADF;
  const bool writes_output = write(1, "x", 1) != -1 || errno != EBADF;
  const bool writes_error = write(2, "x", 1) != -1 || errno != EBADF;
  const int next = open("/dev/null", O_RDONLY);
  for (int i = 0; i < 3; ++i) {
    if (saved[i] != -1) dup2(saved[i], i);
  }
  EXPECT_FALSE(reads);
  EXPECT_FALSE(writes_output);
  EXPECT_FALSE(writes_error);
  EXPECT_GT(next, 2);
  close(next);
  for (const int copy : saved) close(copy);
}

TEST(StandardFilesTest, AnOpenDescriptorStays) {
  const int saved = fcntl(1, F_DUPFD, 3);
  std::array<int, 2> pipes;
  ASSERT_EQ(pipe(pipes.data()), 0);
  dup2(pipes[1], 1);
  OpenClosedStandardFiles();
  const ssize_t written = write(1, "x", 1);
  dup2(saved, 1);
  char byte = 0;
  EXPECT_EQ(written, 1);
  EXPECT_EQ(read(pipes[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  for (const int file : {saved, pipes[0], pipes[1]}) close(file);
}

}  // namespace
}  // namespace tandem
