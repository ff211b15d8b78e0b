// Tests a database file that is removed or replaced while the store uses it.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/backups.h"
#include "server/store/records.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class LostDatabaseTest : public testing::Test {
 protected:
  LostDatabaseTest() {
    Store::Options options;
    options.on_lost = [this](const absl::Status& status, Connection* connection) {
      losses_.push_back(status);
      if (!can_save_) return false;
      saved_ = backups_.CreateFrom(connection);
      return saved_.ok();
    };
    auto store = Store::Open(Path(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  std::string Path() const { return folder_.path() + "/tandem.db"; }
  absl::Status AddJob(const std::string& id) {
    Awaited<absl::Status> done;
    store_->Write(
        [&id](Transaction& transaction) {
          StoredJob job;
          job.job.set_name(JobName(id));
          return transaction.InsertJob(&job, "", {});
        },
        done.Done());
    return done.Get();
  }
  absl::Status Probe() {
    Awaited<absl::Status> done;
    store_->Probe(done.Done());
    return done.Get();
  }
  // Opens the backup that was made after the loss; null if no valid backup exists.
  std::unique_ptr<Store> Saved() {
    EXPECT_TRUE(saved_.ok()) << saved_.status();
    if (!saved_.ok()) return nullptr;
    const absl::Status whole = Backups::Verify(*saved_);
    EXPECT_TRUE(whole.ok()) << whole;
    auto copy = Store::Open(saved_->path());
    EXPECT_TRUE(copy.ok()) << copy.status();
    return copy.ok() ? *std::move(copy) : nullptr;
  }

  TemporaryFolder folder_;
  Backups backups_{{.folder = folder_.path() + "/backups", .database_path = Path()}};
  // Only the writer thread uses it, until a write is answered.
  bool can_save_ = true;
  std::vector<absl::Status> losses_;
  absl::StatusOr<v1::Backup> saved_ = absl::UnknownError("nothing was saved");
  std::unique_ptr<Store> store_;
};

TEST_F(LostDatabaseTest, AllOfItIsSavedAndNothingMoreIsWritten) {
  ASSERT_TRUE(AddJob("a").ok());
  std::filesystem::remove(Path());
  std::filesystem::remove(Path() + "-wal");
  std::filesystem::remove(Path() + "-shm");
  const absl::Status refused = AddJob("b");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(refused.message(), HasSubstr(Path() + ": it was removed while"));
  const std::unique_ptr<Store> saved = Saved();
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->GetJob("a").ok());
  EXPECT_FALSE(saved->GetJob("b").ok());
  EXPECT_FALSE(Probe().ok());
  EXPECT_THAT(losses_, SizeIs(1));
  // Nobody created a new file.
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(LostDatabaseTest, AnotherFileInItsPlaceStaysAsItIs) {
  ASSERT_TRUE(AddJob("a").ok());
  const std::string other = folder_.path() + "/other.db";
  std::ofstream(other) << "another file";
  std::filesystem::rename(other, Path());
  const absl::Status refused = Probe();
  EXPECT_THAT(refused.message(), HasSubstr("replaced by another file"));
  EXPECT_NE(Saved(), nullptr);
  EXPECT_EQ(std::filesystem::file_size(Path()), 12);
}

// A stopping daemon stops backups first and closes the store last.
TEST_F(LostDatabaseTest, ItIsSavedAfterBackupsWereStopped) {
  ASSERT_TRUE(AddJob("a").ok());
  backups_.Stop();
  std::filesystem::remove(Path());
  EXPECT_FALSE(Probe().ok());
  const std::unique_ptr<Store> saved = Saved();
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->GetJob("a").ok());
}

TEST_F(LostDatabaseTest, ItIsSavedWhereNothingIsWrittenBeforeTheEnd) {
  ASSERT_TRUE(AddJob("a").ok());
  backups_.Stop();
  std::filesystem::remove(Path());
  std::filesystem::remove(Path() + "-wal");
  store_->Close();
  EXPECT_THAT(losses_, SizeIs(1));
  const std::unique_ptr<Store> saved = Saved();
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->GetJob("a").ok());
}

TEST_F(LostDatabaseTest, ItIsToldUntilItIsSaved) {
  ASSERT_TRUE(AddJob("a").ok());
  can_save_ = false;
  std::filesystem::rename(Path(), Path() + ".elsewhere");
  EXPECT_FALSE(Probe().ok());
  const size_t told = losses_.size();
  EXPECT_GE(told, 1);
  can_save_ = true;
  // After ten times the duration of the last try.
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (losses_.size() == told && absl::Now() < deadline) EXPECT_FALSE(Probe().ok());
  EXPECT_THAT(losses_, SizeIs(told + 1));
  const std::unique_ptr<Store> saved = Saved();
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->GetJob("a").ok());
}

// A copy of the new file would be empty and push out valid backups.
TEST_F(LostDatabaseTest, NoOtherBackupIsMadeOfIt) {
  std::filesystem::remove(Path());
  EXPECT_FALSE(backups_.Create(/*automatic=*/true).ok());
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

}  // namespace
}  // namespace tandem
