#include "server/daemon/begin_anew.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/state_folder.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_lock.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BeginAnewTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << name;
  }
  std::string Remains() const { return RemainsOf(folder_.path()); }
  // Returns the new folder.
  std::string Aside() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().rfind("before-", 0) == 0) return entry.path().string();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(BeginAnewTest, OfAFreshFolderNothingRemains) {
  EXPECT_EQ(Remains(), "");
  EXPECT_EQ(BeginAnew(folder_.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  // A daemon creates this folder before its database.
  std::filesystem::create_directory(Path("uploads"));
  Write("token");
  Write("clock");
  EXPECT_EQ(Remains(), "");
}

TEST_F(BeginAnewTest, NotWhileAWorkerRuns) {
  Write("tandem.db");
  std::filesystem::create_directories(Path("jobs/a-1"));
  const JobFolder job(Path("jobs/a-1"));
  {
    auto lock = WorkerLock::Acquire(job.LockPath());
    ASSERT_TRUE(lock.ok()) << lock.status();
    ASSERT_TRUE(lock->SetHolder({.attempt = 1, .pid = 4711}).ok());
    const absl::Status refused = BeginAnew(folder_.path()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("process 4711 of job a-1"));
    EXPECT_TRUE(std::filesystem::exists(Path("tandem.db")));
  }
  EXPECT_TRUE(BeginAnew(folder_.path()).ok());
}

TEST_F(BeginAnewTest, WhatTheDatabaseKnewIsPutAsideAndNothingIsLost) {
  for (const char* name :
       {"tandem.db", "tandem.db-wal", "tandem.db.restoration", "jobs/a-1/worker.log", "uploads/u/data.csv",
        "backups/x.db", "token", "cache/entry", "tandem.db-reserve"}) {
    Write(name);
  }
  EXPECT_EQ(Remains(), "tandem.db-wal, tandem.db.restoration, backups/, jobs/, uploads/");
  const auto done = BeginAnew(folder_.path());
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_THAT(*done, AllOf(HasSubstr("tandem.db, "), HasSubstr("uploads of "),
                           HasSubstr(std::filesystem::path(Aside()).filename().string())));
  for (const char* name : {"tandem.db", "tandem.db-wal", "tandem.db.restoration", "jobs/a-1/worker.log",
                           "uploads/u/data.csv", "backups/x.db"}) {
    EXPECT_FALSE(std::filesystem::exists(Path(name))) << name;
    EXPECT_TRUE(std::filesystem::exists(Aside() + "/" + name)) << name;
  }
  EXPECT_EQ(std::filesystem::status(Aside()).permissions(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(std::filesystem::exists(Path("token")));
  EXPECT_TRUE(std::filesystem::exists(Path("cache/entry")));
  EXPECT_EQ(Remains(), "");
}

TEST_F(BeginAnewTest, NotUnderADaemon) {
  Write("tandem.db");
  const auto held = StateFolder::Lock(folder_.path());
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(BeginAnew(folder_.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(Path("tandem.db")));
}

}  // namespace
}  // namespace tandem
