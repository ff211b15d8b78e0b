#include "server/workers/worker_secret.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

TEST(WorkerSecretTest, IsRandomAndCompared) {
  const absl::StatusOr<std::string> one = MakeWorkerSecret(), other = MakeWorkerSecret();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->size(), 64);
  EXPECT_NE(*one, *other);
  EXPECT_TRUE(IsWorkerSecret(*one, *one));
  EXPECT_FALSE(IsWorkerSecret(*other, *one));
  EXPECT_FALSE(IsWorkerSecret("", *one));
  EXPECT_FALSE(IsWorkerSecret(*one + "0", *one));
  EXPECT_FALSE(IsWorkerSecret(one->substr(1), *one));
  EXPECT_FALSE(IsWorkerSecret("", ""));
  EXPECT_FALSE(IsWorkerSecret(*one, ""));
}

TEST(WorkerSecretTest, IsReadFromWhatTheWorkerWasStartedWith) {
  const TemporaryFolder state;
  const JobFolder folder(state.path());
  std::filesystem::create_directory(folder.AttemptFolder(3));
  EXPECT_EQ(WorkerSecretOf(folder, 3), "");
  const auto write = [&](const std::string& text) { std::ofstream(folder.LaunchPath(3)) << text; };
  write("job_id: 'a' secret: 'of-a'");
  EXPECT_EQ(WorkerSecretOf(folder, 3), "of-a");
  EXPECT_EQ(WorkerSecretOf(folder, 2), "");
  // A later version's file.
  write("job_id: 'a' what_comes: 7 secret: 'of-a'");
  EXPECT_EQ(WorkerSecretOf(folder, 3), "of-a");
  // An unreadable file.
  write("job_id: {");
  EXPECT_EQ(WorkerSecretOf(folder, 3), "");
  std::filesystem::remove(folder.LaunchPath(3));
  std::filesystem::create_directory(folder.LaunchPath(3));
  EXPECT_EQ(WorkerSecretOf(folder, 3), "");
}

}  // namespace
}  // namespace tandem
