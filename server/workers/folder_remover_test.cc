#include "server/workers/folder_remover.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

class FolderRemoverTest : public testing::Test {
 protected:
  // The folder of a job that was deleted, or whose id is reserved for a fork: the store does not tell these
  // apart.
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
  // A fork begins to be made.
  const std::string fork = DeletedJob();
  std::filesystem::create_directories(fork);
  folders.AddOrphans(&jobs_.machine(), listed);
  folders.RemoveAll();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(fork));
}

}  // namespace
}  // namespace tandem
