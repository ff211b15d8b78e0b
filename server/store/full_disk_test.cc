#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/reserved_room.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

// Uses a small file system of its own, which can be filled completely. Needs root.
class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=16m,mode=0700") != 0) {
      GTEST_SKIP() << "may not mount a file system here";
    }
    mounted_ = true;
    Open();
  }
  void TearDown() override {
    store_.reset();
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }

  void Open() {
    store_.reset();
    auto store = Store::Open(folder_.path() + "/tandem.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  absl::Status Write(std::function<absl::Status(Transaction&)> body) {
    Awaited<absl::Status> done;
    store_->Write(std::move(body), done.Done());
    return done.Get();
  }
  absl::Status Insert(const std::string& id, size_t bytes = 100000) {
    return Write([&](Transaction& transaction) {
      StoredJob job;
      job.job.set_name(JobName(id));
      job.job.set_state(v1::JOB_STATE_SUCCEEDED);
      job.job.mutable_spec()->set_name(std::string(bytes, 'x'));
      return transaction.InsertJob(&job, "", v1::JobSpec());
    });
  }
  absl::Status Delete(const std::string& id) {
    return Write([&](Transaction& transaction) -> absl::Status {
      absl::StatusOr<StoredJob> job = transaction.GetJob(id);
      if (!job.ok()) return job.status();
      return transaction.DeleteJob(*job);
    });
  }
  absl::Status Cancel(const std::string& id) {
    return Write([&](Transaction& transaction) -> absl::Status {
      absl::StatusOr<StoredJob> job = transaction.GetJob(id);
      if (!job.ok()) return job.status();
      v1::JobEvent event;
      event.set_job(job->job.name());
      event.set_sequence(job->job.last_sequence() + 1);
      event.mutable_state_change()->set_to(v1::JOB_STATE_CANCELLING);
      absl::Status added = transaction.AppendEvent(*job, event);
      if (!added.ok()) return added;
      job->job.set_last_sequence(event.sequence());
      job->job.set_state(v1::JOB_STATE_CANCELLING);
      return transaction.UpdateJob(&*job);
    });
  }

  // Fills the disk.
  void Fill() {
    const int file = open((folder_.path() + "/ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_GE(file, 0);
    const std::string block(4096, 'x');
    while (write(file, block.data(), block.size()) > 0) {
    }
    EXPECT_EQ(errno, ENOSPC);
    close(file);
    ASSERT_EQ(ReservedRoom::AvailableBytes(folder_.path()), 0);
  }
  int64_t Kept() const {
    return static_cast<int64_t>(std::filesystem::file_size(folder_.path() + "/tandem.db-reserve"));
  }

  TemporaryFolder folder_;
  bool mounted_ = false;
  std::unique_ptr<Store> store_;
};

TEST_F(FullDiskTest, JobsAreCancelledAndDeleted) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Insert(id).ok());
  EXPECT_EQ(Kept(), ReservedRoom::kSize);
  // Space that the log already has can be written again.
  Open();
  Fill();
  const absl::Status refused = Insert("d");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(Kept(), ReservedRoom::kSize) << "nothing but what gives room back may have it";
  EXPECT_EQ(Cancel("a").message(), "");
  EXPECT_LT(Kept(), ReservedRoom::kSize);
  // Other files take the rest.
  Fill();
  EXPECT_EQ(Delete("b").message(), "");
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("b").status()));
  EXPECT_GT(Kept(), 0);
  Fill();
  EXPECT_TRUE(absl::IsResourceExhausted(Insert("d")));

  std::filesystem::remove(folder_.path() + "/ballast");
  Open();
  EXPECT_EQ(Kept(), ReservedRoom::kSize);
  EXPECT_EQ(store_->GetJob("a")->job.state(), v1::JOB_STATE_CANCELLING);
  EXPECT_TRUE(absl::IsNotFound(store_->GetJob("b").status()));
  EXPECT_TRUE(Insert("d").ok());
}

TEST_F(FullDiskTest, WhatIsNotDoneGivesUpNothing) {
  Fill();
  EXPECT_TRUE(absl::IsNotFound(Delete("nobody")));
  EXPECT_EQ(Kept(), ReservedRoom::kSize);
}

TEST_F(FullDiskTest, WhereAllIsGivenUpADeletionFailsAsEverythingDoes) {
  ASSERT_TRUE(Insert("a").ok());
  Open();
  std::filesystem::resize_file(folder_.path() + "/tandem.db-reserve", 0);
  Fill();
  const absl::Status refused = Delete("a");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(store_->GetJob("a").ok());
}

}  // namespace
}  // namespace tandem
