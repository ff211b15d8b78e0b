#include "server/store/state_folder.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StateFolderTest, MakesTheFolderForItsOwnerAlone) {
  TemporaryFolder parent;
  const auto folder = StateFolder::Lock(parent.path() + "/a/b/");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ((*folder)->path(), std::filesystem::canonical(parent.path()).string() + "/a/b");
  struct stat status;
  ASSERT_EQ(stat((*folder)->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_TRUE(std::filesystem::is_directory((*folder)->JobsFolder()));
}

TEST(StateFolderTest, RefusesOneThatOthersMayWriteTo) {
  TemporaryFolder parent;
  for (const mode_t mode : {0777, 0720, 0702, 01777}) {
    ASSERT_EQ(chmod(parent.path().c_str(), mode), 0);
    const auto refused = StateFolder::Lock(parent.path());
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr(absl::StrFormat("mode %04o", mode)), HasSubstr("chmod go-w")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  ASSERT_EQ(chmod(parent.path().c_str(), 0755), 0);
  EXPECT_TRUE(StateFolder::Lock(parent.path()).ok());
}

TEST(StateFolderTest, RefusesASecondHolderAndNamesTheFirst) {
  TemporaryFolder parent;
  auto first = StateFolder::Lock(parent.path());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StateFolder::Lock(parent.path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr((*first)->path()), HasSubstr(absl::StrCat("process ", getpid()))));

  first->reset();
  const auto third = StateFolder::Lock(parent.path());
  EXPECT_TRUE(third.ok()) << third.status();
}

// The next daemon may start right after the previous daemon was told to stop.
TEST(StateFolderTest, WaitsForAHolderThatStops) {
  TemporaryFolder parent;
  auto first = StateFolder::Lock(parent.path());
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->AnnounceStop();
  std::atomic<bool> let_go = false;
  std::thread stopping([&] {
    absl::SleepFor(absl::Milliseconds(100));
    let_go = true;
    first->reset();
  });
  const auto second = StateFolder::Lock(parent.path());
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(let_go);
  stopping.join();
  // The first holder's announcement says nothing about the second holder.
  EXPECT_EQ(StateFolder::Lock(parent.path()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(StateFolderTest, IsTheSameFolderThroughASymbolicLink) {
  TemporaryFolder parent;
  std::filesystem::create_directory(parent.path() + "/real");
  std::filesystem::create_symlink(parent.path() + "/real", parent.path() + "/link");
  const auto first = StateFolder::Lock(parent.path() + "/real");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(StateFolder::Lock(parent.path() + "/link").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(StateFolderTest, IsNotHeldByAProgramThatTheHolderStarted) {
  TemporaryFolder parent;
  auto folder = StateFolder::Lock(parent.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  char program[] = "/bin/sleep";
  char seconds[] = "60";
  char* arguments[] = {program, seconds, nullptr};
  pid_t child;
  ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
  folder->reset();
  EXPECT_TRUE(StateFolder::Lock(parent.path()).ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(StateFolderTest, WaitsForAChildOfADeadHolder) {
  TemporaryFolder parent;
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  pid_t dead;
  ASSERT_EQ(posix_spawn(&dead, program, nullptr, nullptr, arguments, environ), 0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const std::string path = parent.path() + "/daemon.lock";
  std::ofstream(path) << dead << "\n";
  const int child_file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(child_file, LOCK_EX | LOCK_NB), 0);
  std::thread child([child_file] {
    absl::SleepFor(absl::Milliseconds(200));
    close(child_file);
  });
  const auto folder = StateFolder::Lock(parent.path());
  EXPECT_TRUE(folder.ok()) << folder.status();
  child.join();
}

// Its process id means nothing here, and Lock must wait as long.
TEST(StateFolderTest, WaitsForAHolderThatStopsInAnotherContainer) {
  TemporaryFolder parent;
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  pid_t dead;
  ASSERT_EQ(posix_spawn(&dead, program, nullptr, nullptr, arguments, environ), 0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const std::string path = parent.path() + "/daemon.lock";
  std::ofstream(path) << dead << " stops\n";
  const int lock = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  // Longer than the patience for a dead holder's child.
  std::thread holder([lock] {
    absl::SleepFor(absl::Seconds(6));
    close(lock);
  });
  const auto folder = StateFolder::Lock(parent.path());
  holder.join();
  EXPECT_TRUE(folder.ok()) << folder.status();
}

TEST(StateFolderTest, SaysHowToMendAReadOnlyDisk) {
  TemporaryFolder parent;
  if (mount("tmpfs", parent.path().c_str(), "tmpfs", MS_RDONLY, "mode=0700") != 0) {
    GTEST_SKIP() << "may not mount a file system here";
  }
  const auto folder = StateFolder::Lock(parent.path());
  umount2(parent.path().c_str(), MNT_DETACH);
  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("/daemon.lock: Read-only file system; mount its disk writable"));
}

// For example, somebody ran `tandemd --restore-backup` as root on the folder of the service.
TEST(StateFolderTest, SaysHowToMendFilesOfAnotherUser) {
  TemporaryFolder parent;
  const std::string path = parent.path() + "/daemon.lock";
  std::ofstream(path).close();
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Without capabilities, root may not open the file for writing.
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) _exit(2);
    const auto folder = StateFolder::Lock(parent.path());
    const std::string wanted =
        "/daemon.lock: Permission denied; run tandemd as the user that owns the state folder";
    _exit(absl::StrContains(folder.status().message(), wanted) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(StateFolderTest, SaysWhatIsInTheWay) {
  TemporaryFolder parent;
  std::ofstream(parent.path() + "/file") << "x";
  const auto folder = StateFolder::Lock(parent.path() + "/file");
  EXPECT_FALSE(folder.ok());
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("/file: it is not a folder"));
  EXPECT_EQ(StateFolder::Lock("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StateFolderTest, SharesItsFoldersThroughLinks) {
  TemporaryFolder parent;
  const std::string shared = parent.path() + "/shared";
  std::filesystem::create_directory(shared);
  const auto folder = StateFolder::Lock(parent.path() + "/state");
  ASSERT_TRUE(folder.ok()) << folder.status();
  for (int again = 0; again < 2; ++again) {
    const auto real = (*folder)->ShareThrough(shared);
    ASSERT_TRUE(real.ok()) << real.status();
    EXPECT_EQ(*real, std::filesystem::canonical(shared).string());
    EXPECT_TRUE(std::filesystem::equivalent((*folder)->JobsFolder(), shared + "/jobs"));
    EXPECT_TRUE(std::filesystem::equivalent((*folder)->UploadsFolder(), shared + "/uploads"));
  }
  const auto other = StateFolder::Lock(parent.path() + "/other");
  ASSERT_TRUE(other.ok()) << other.status();
  const absl::Status refused = (*other)->ShareThrough(shared).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("uses it; use another folder"));
  EXPECT_EQ(StateFolder::CheckShare(parent.path() + "/other", shared), refused);
}

TEST(StateFolderTest, SharesAnUnusedCache) {
  TemporaryFolder parent;
  const std::string shared = parent.path() + "/shared";
  std::filesystem::create_directory(shared);
  const auto folder = StateFolder::Lock(parent.path() + "/state");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string cache = parent.path() + "/state/cache";
  std::filesystem::create_directories(cache + "/entries");
  std::filesystem::create_directories(cache + "/partial");
  const absl::Status possible = StateFolder::CheckShare(parent.path() + "/state", shared);
  EXPECT_TRUE(possible.ok()) << possible;
  EXPECT_TRUE(std::filesystem::is_empty(shared)) << "the check changed it";
  const auto real = (*folder)->ShareThrough(shared);
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_TRUE(std::filesystem::equivalent(cache, shared + "/cache"));
}

TEST(StateFolderTest, SharesNoFolderThatHasContent) {
  TemporaryFolder parent;
  const std::string shared = parent.path() + "/shared";
  std::filesystem::create_directory(shared);
  const auto folder = StateFolder::Lock(parent.path() + "/state");
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::filesystem::create_directory((*folder)->JobsFolder() + "/job");
  std::filesystem::create_directories(parent.path() + "/state/cache/entries/data");
  const absl::Status refused = (*folder)->ShareThrough(shared).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("state/jobs with a cluster: it has content; stop the daemon, move its content to "),
            HasSubstr("/shared/jobs and remove ")));
  EXPECT_EQ(StateFolder::CheckShare(parent.path() + "/state", shared), refused);
  EXPECT_TRUE(std::filesystem::is_empty(shared)) << "a refusal changed it";
  std::filesystem::remove((*folder)->JobsFolder() + "/job");
  EXPECT_THAT(std::string((*folder)->ShareThrough(shared).status().message()),
              HasSubstr("state/cache with a cluster: it has content"));
  std::filesystem::remove_all(parent.path() + "/state/cache");
  std::filesystem::create_directory_symlink(parent.path(), parent.path() + "/state/cache");
  EXPECT_THAT(std::string((*folder)->ShareThrough(shared).status().message()),
              HasSubstr("state/cache with a cluster: it is a link to another place"));
  EXPECT_EQ((*folder)->ShareThrough(parent.path() + "/none").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tandem
