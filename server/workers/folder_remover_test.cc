#include "server/workers/folder_remover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/unique_fd.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/store/without_privileges.h"

namespace tandem {
namespace {

class FolderRemoverTest : public testing::Test {
 protected:
  // Returns the folder of a deleted job, or of a job whose id is reserved for a fork: the store does not
  // distinguish them.
  std::string DeletedJob() {
    const std::string id = jobs_.NewJob();
    std::string folder = jobs_.Get(id).folder();
    EXPECT_TRUE(jobs_.Cancel(id).ok());
    EXPECT_TRUE(jobs_.Delete(id).ok());
    return folder;
  }

  JobMachineFixture jobs_;
};

TEST_F(FolderRemoverTest, WhatAnEarlierDaemonLeftIsRemoved) {
  const std::string left = DeletedJob();
  std::filesystem::create_directories(left);
  FolderRemover folders(std::filesystem::path(left).parent_path().string());
  const std::vector<std::string> listed = folders.ListFolders();
  // A fork is in creation.
  const std::string fork = DeletedJob();
  std::filesystem::create_directories(fork);
  folders.AddOrphans(&jobs_.machine(), listed);
  folders.RemoveAll();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(fork));
}

TEST_F(FolderRemoverTest, AThreadRemovesWhatIsAdded) {
  const std::string left = DeletedJob(), added = DeletedJob();
  for (const std::string& folder : {left, added}) {
    std::filesystem::create_directories(folder + "/a/b");
    std::ofstream(folder + "/a/b/c") << "x";
    std::filesystem::create_directory_symlink("/", folder + "/a/link");
  }
  FolderRemover folders(std::filesystem::path(left).parent_path().string());
  folders.Start(&jobs_.machine(), {left});
  folders.Add(added);
  for (const std::string& folder : {left, added}) {
    while (std::filesystem::exists(folder)) absl::SleepFor(absl::Milliseconds(1));
  }
}

// The daemon ends during the removal of a folder, and does not wait for it.
TEST_F(FolderRemoverTest, AStopEndsARemovalThatTheNextGoesOnWith) {
  const std::string left = DeletedJob();
  for (int folder = 0; folder < 100; ++folder) {
    const std::string path = absl::StrCat(left, "/", folder);
    std::filesystem::create_directories(path);
    for (int file = 0; file < 100; ++file) std::ofstream(absl::StrCat(path, "/", file)) << "x";
  }
  // Counts the remaining folders, without errors if they disappear meanwhile.
  const auto count = [&left] {
    int there = 0;
    for (int folder = 0; folder < 100; ++folder) {
      std::error_code error;
      if (std::filesystem::exists(absl::StrCat(left, "/", folder), error)) ++there;
    }
    return there;
  };
  const int all = count();
  const std::string jobs = std::filesystem::path(left).parent_path().string();
  {
    FolderRemover folders(jobs);
    folders.Start(&jobs_.machine(), {left});
    while (std::filesystem::exists(left) && count() == all) {
    }
    folders.Stop();
  }
  // The removal may have been quick.
  if (std::filesystem::exists(left)) {
    FolderRemover next(jobs);
    next.AddOrphans(&jobs_.machine(), next.ListFolders());
    next.RemoveAll();
  }
  EXPECT_FALSE(std::filesystem::exists(left));
}

// A hijacked worker could try to make its job's files outlive the job.
TEST_F(FolderRemoverTest, ClosedFoldersAndThoseThatAreTooDeepGoToo) {
  using std::filesystem::perms;
  const std::string left = DeletedJob();
  for (const std::string folder : {"/closed/inner", "/read-only"}) {
    std::filesystem::create_directories(left + folder);
    std::ofstream(left + folder + "/file") << "x";
  }
  const std::string outside = std::filesystem::path(left).parent_path().string() + "/outside";
  std::filesystem::create_directories(outside);
  std::filesystem::permissions(outside, perms::owner_read | perms::owner_exec);
  std::filesystem::create_directory_symlink(outside, left + "/closed/link");
  // No path can name the deepest folders.
  UniqueFd deep(open(left.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 100; ++i) {
    const std::string name = i == 0 ? ".removed-0" : std::string(200, 'a');
    ASSERT_EQ(mkdirat(deep.get(), name.c_str(), i == 98 ? 0500 : 0700), 0) << i;
    deep = UniqueFd(openat(deep.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  deep.Reset();
  for (const auto& [folder, mode] : {std::pair("/closed/inner", perms::none),
                                     {"/closed", perms::none},
                                     {"/read-only", perms::owner_read | perms::owner_exec},
                                     {"", perms::none}}) {
    std::filesystem::permissions(left + folder, mode);
  }
  const WithoutPrivileges without_privileges;
  std::error_code error;
  std::filesystem::directory_iterator(left, error);
  ASSERT_TRUE(error) << "modes do not hold here";
  FolderRemover folders(std::filesystem::path(left).parent_path().string());
  folders.Add(left);
  folders.RemoveAll();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(std::filesystem::status(outside).permissions(), perms::owner_read | perms::owner_exec);
}

}  // namespace
}  // namespace tandem
