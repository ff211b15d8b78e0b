#include "server/clusters/attempt_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

class AttemptFilesTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::string Read(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string Own(int attempt, const std::string& name) {
    return folder_.AttemptFolder(attempt) + "/" + name;
  }
  std::string Published(const std::string& name) { return folder_.path() + "/" + name; }

  TemporaryFolder scratch_;
  JobFolder folder_{scratch_.path() + "/job"};
};

TEST_F(AttemptFilesTest, TheNextAttemptContinuesFromThePublishedCheckpoint) {
  ASSERT_TRUE(PrepareAttemptFolder(folder_, 1, 2).ok());
  EXPECT_TRUE(std::filesystem::equivalent(Published("worker-0.log"), folder_.LogPath(0)));
  EXPECT_TRUE(std::filesystem::exists(folder_.LogPath(1)));
  Write(Own(1, "job.yaml"), "job");
  Write(Own(1, "checkpoint-5.safetensors"), "five");
  Write(Own(1, "launch.textproto"), "secret");
  ASSERT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  EXPECT_EQ(Read(Published("checkpoint-5.safetensors")), "five");
  EXPECT_FALSE(std::filesystem::exists(Published("launch.textproto")));

  Write(Own(1, "checkpoint-9.safetensors"), "nine");
  std::filesystem::remove(Own(1, "checkpoint-5.safetensors"));
  ASSERT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  EXPECT_FALSE(std::filesystem::exists(Published("checkpoint-5.safetensors")));

  ASSERT_TRUE(PrepareAttemptFolder(folder_, 2, 2).ok());
  EXPECT_EQ(Read(Own(2, "checkpoint-9.safetensors")), "nine");
}

TEST_F(AttemptFilesTest, ALateWorkerOfAnOldAttemptChangesNothing) {
  ASSERT_TRUE(PrepareAttemptFolder(folder_, 1, 1).ok());
  Write(Own(1, "job.yaml"), "job");
  Write(Own(1, "checkpoint-5.safetensors"), "five");
  ASSERT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  ASSERT_TRUE(PrepareAttemptFolder(folder_, 2, 1).ok());
  // Workers replace files, and never write into a file with a name.
  Write(Own(1, "new"), "late");
  std::filesystem::rename(Own(1, "new"), Own(1, "checkpoint-5.safetensors"));
  EXPECT_EQ(Read(Own(2, "checkpoint-5.safetensors")), "five");
  EXPECT_EQ(Read(Published("checkpoint-5.safetensors")), "five");
}

TEST_F(AttemptFilesTest, AnEndedAttemptsFilesAreNotPublishedAgain) {
  ASSERT_TRUE(PrepareAttemptFolder(folder_, 1, 1).ok());
  Write(Own(1, "job.yaml"), "job");
  Write(Own(1, "checkpoint-5.safetensors"), "five");
  ASSERT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  RemoveAttemptFiles(folder_, 1);
  EXPECT_FALSE(std::filesystem::exists(Own(1, "checkpoint-5.safetensors")));
  ASSERT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  EXPECT_EQ(Read(Published("checkpoint-5.safetensors")), "five");
}

// Another file system takes the place of one without hard links.
TEST_F(AttemptFilesTest, WithoutHardLinksAFileIsCopiedAgainAfterItsReplacementInTheSameSecond) {
  std::string other = "/dev/shm/attempt-files-XXXXXX";
  ASSERT_NE(mkdtemp(other.data()), nullptr);
  const auto replace = [&](const std::string& text, int64_t nanoseconds) {
    Write(other + "/new", text);
    const timespec times[2] = {{1700000000, nanoseconds}, {1700000000, nanoseconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, (other + "/new").c_str(), times, 0), 0);
    std::filesystem::rename(other + "/new", other + "/best.safetensors");
  };
  std::filesystem::create_directories(folder_.path());
  std::filesystem::create_directory_symlink(other, folder_.AttemptFolder(1));
  Write(other + "/job.yaml", "job");
  replace("four", 100'000'000);
  EXPECT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  EXPECT_EQ(Read(Published("best.safetensors")), "four");
  // A copy, because /dev/shm is not on the file system of the scratch folder.
  ASSERT_EQ(std::filesystem::hard_link_count(other + "/best.safetensors"), 1);
  replace("five", 900'000'000);
  EXPECT_TRUE(PublishAttemptFiles(folder_, 1).ok());
  EXPECT_EQ(Read(Published("best.safetensors")), "five");
  std::filesystem::remove_all(other);
}

TEST_F(AttemptFilesTest, ReadsTheScriptsFiles) {
  ASSERT_TRUE(PrepareAttemptFolder(folder_, 1, 1).ok());
  EXPECT_EQ(StartOfAttempt(folder_, 1), std::nullopt);
  EXPECT_EQ(EndOfAttempt(folder_, 1), std::nullopt);
  const absl::Time before = absl::Now();
  Write(Own(1, "started"), "12 n1\n");
  const std::optional<absl::Time> start = StartOfAttempt(folder_, 1);
  ASSERT_TRUE(start.has_value());
  // The file system's clock ticks every few milliseconds.
  EXPECT_GE(*start, before - absl::Milliseconds(100));
  EXPECT_LE(*start, absl::Now() + absl::Milliseconds(100));
  Write(Own(1, "ended"), "76\n");
  EXPECT_EQ(EndOfAttempt(folder_, 1), (AttemptEnd{76, false}));
  Write(Own(1, "ended"), "0 SIGTERM\n");
  EXPECT_EQ(EndOfAttempt(folder_, 1), (AttemptEnd{0, true}));
  Write(Own(1, "ended"), "no number\n");
  EXPECT_EQ(EndOfAttempt(folder_, 1), std::nullopt);
}

TEST(TaskFilesTest, ReadsTheFilesOfTasks) {
  const TemporaryFolder temporary;
  const JobFolder folder(temporary.path());
  EXPECT_TRUE(ReadTaskFiles(folder, 1, 3).started.empty());
  const std::string own = folder.AttemptFolder(1);
  std::filesystem::create_directories(own);
  std::ofstream(own + "/started-0") << "a\n";
  std::ofstream(own + "/started-1") << "b\n";
  std::ofstream(own + "/ended-1") << "137\n";
  std::ofstream(own + "/ended-9") << "1\n";
  // A hostile worker.
  ASSERT_EQ(mkfifo((own + "/ended-0").c_str(), 0600), 0);
  std::filesystem::create_symlink(own + "/ended-1", own + "/ended-2");
  const TaskFiles files = ReadTaskFiles(folder, 1, 3);
  EXPECT_EQ(files.started, (std::map<int, std::string>{{0, "a"}, {1, "b"}}));
  EXPECT_EQ(files.ended, (std::map<int, int>{{1, 137}}));
  ASSERT_EQ(mkfifo((own + "/ended").c_str(), 0600), 0);
  EXPECT_FALSE(EndOfAttempt(folder, 1).has_value());
}

}  // namespace
}  // namespace tandem
