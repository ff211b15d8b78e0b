#include "server/workers/worker_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class WorkerLockTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/worker.lock";
};

TEST_F(WorkerLockTest, NamesItsHolderWhileItIsHeld) {
  EXPECT_FALSE(WorkerLock::FindHolder(path_)->has_value());
  {
    absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(path_);
    ASSERT_TRUE(lock.ok()) << lock.status();
    // The worker has not written its number yet.
    absl::StatusOr<std::optional<WorkerLock::Holder>> holder = WorkerLock::FindHolder(path_);
    ASSERT_TRUE(holder.ok()) << holder.status();
    ASSERT_TRUE(holder->has_value());
    EXPECT_EQ((*holder)->pid, 0);
    ASSERT_TRUE(lock->SetHolder({.attempt = 3, .pid = 1234}).ok());
    holder = WorkerLock::FindHolder(path_);
    ASSERT_TRUE(holder.ok() && holder->has_value());
    EXPECT_EQ((*holder)->attempt, 3);
    EXPECT_EQ((*holder)->pid, 1234);
    const absl::Status second = WorkerLock::Acquire(path_).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
    EXPECT_THAT(std::string(second.message()),
                HasSubstr("cannot lock " + path_ + ": another process holds the lock"));
  }
  EXPECT_FALSE(WorkerLock::FindHolder(path_)->has_value());
  EXPECT_TRUE(WorkerLock::Acquire(path_).ok());
}

TEST_F(WorkerLockTest, WhatIsNoFileIsNoLock) {
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(WorkerLock::FindHolder(path_)->has_value());
  EXPECT_FALSE(WorkerLock::Acquire(path_).ok());
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/etc/passwd", path_);
  EXPECT_FALSE(WorkerLock::FindHolder(path_)->has_value());
  // A file in the place of a folder is an error.
  std::ofstream(folder_.path() + "/file") << "";
  const absl::Status status = WorkerLock::FindHolder(folder_.path() + "/file/worker.lock").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot open"));
}

TEST_F(WorkerLockTest, OnlyTheNamedFileIsInherited) {
  absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(path_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::ofstream(folder_.path() + "/other") << "";
  const int other = open((folder_.path() + "/other").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(other, 0);
  const absl::Status wrong = WorkerLock::Inherit(other, path_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong)) << wrong;
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("is not the lock " + path_));
  close(other);
  EXPECT_TRUE(absl::IsFailedPrecondition(WorkerLock::Inherit(-1, path_).status()));
  // Another open file of the same path does not have the lock.
  const int second = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(second, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(WorkerLock::Inherit(second, path_).status()));
  // A copy of the descriptor is the same open file.
  const int copy = dup(lock->fd());
  ASSERT_GE(copy, 0);
  const absl::StatusOr<WorkerLock> inherited = WorkerLock::Inherit(copy, path_);
  ASSERT_TRUE(inherited.ok()) << inherited.status();
  EXPECT_EQ(inherited->fd(), copy);
  EXPECT_NE(fcntl(copy, F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace tandem
