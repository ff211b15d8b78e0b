#include "server/store/backups.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/backup_schedule.h"
#include "server/store/connection.h"
#include "server/store/database_check.h"
#include "server/store/interruption.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BackupsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::Open(Database());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  std::string Database() const { return folder_.path() + "/tandem.db"; }
  Backups Make(int kept = 3) {
    return Backups(
        {.folder = folder_.path() + "/backups", .database_path = Database(), .kept = kept, .clock = &clock_});
  }
  void AddJob(const std::string& id) {
    Awaited<absl::Status> done;
    store_->Write(
        [&id](Transaction& transaction) {
          StoredJob job;
          job.job.set_name(JobName(id));
          return transaction.InsertJob(&job, "", {});
        },
        done.Done());
    ASSERT_TRUE(done.Get().ok());
  }
  // In one transaction.
  void AddJobs(int count) {
    Awaited<absl::Status> done;
    store_->Write(
        [count](Transaction& transaction) {
          absl::Status status;
          for (int i = 0; i < count && status.ok(); ++i) {
            StoredJob job;
            job.job.set_name(JobName(absl::StrCat("many-", i)));
            status = transaction.InsertJob(&job, "", {});
          }
          return status;
        },
        done.Done());
    ASSERT_TRUE(done.Get().ok());
  }
  std::vector<std::string> Names(const Backups& backups) {
    std::vector<std::string> names;
    const auto listed = backups.List();
    EXPECT_TRUE(listed.ok()) << listed.status();
    if (!listed.ok()) return names;
    for (const v1::Backup& backup : *listed) names.push_back(backup.name());
    return names;
  }

  TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1795356930)};
  std::unique_ptr<Store> store_;
};

TEST_F(BackupsTest, ACopyHasAllThatWasWrittenBefore) {
  AddJob("a");
  Backups backups = Make();
  const auto made = backups.Create(/*automatic=*/false);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->name(), "backups/20261122T141530Z");
  EXPECT_EQ(made->path(), folder_.path() + "/backups/20261122T141530Z.db");
  EXPECT_EQ(made->create_time().seconds(), 1795356930);
  EXPECT_FALSE(made->automatic());
  EXPECT_EQ(made->size_bytes(), std::filesystem::file_size(made->path()));
  EXPECT_EQ(made->sha256(), *Sha256OfFile(made->path()));
  EXPECT_TRUE(Backups::Verify(*made).ok());

  AddJob("b");
  auto copy = Store::Open(made->path());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE((*copy)->GetJob("a").ok());
  EXPECT_FALSE((*copy)->GetJob("b").ok());
  const auto listed = backups.List();
  ASSERT_TRUE(listed.ok());
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ((*listed)[0].sha256(), made->sha256());
  // The format of sha256sum -c.
  std::ifstream sum(made->path() + ".sha256");
  std::string line;
  std::getline(sum, line);
  EXPECT_EQ(line, made->sha256() + "  20261122T141530Z.db");
}

TEST_F(BackupsTest, WritersGoOnMeanwhile) {
  for (int i = 0; i < 200; ++i) AddJob(absl::StrCat("j", i));
  Backups backups = Make(100);
  std::atomic<bool> done = false;
  int made = 0;
  std::thread thread([&] {
    while (!done) {
      clock_.Advance(absl::Seconds(1));
      const auto backup = backups.Create(true);
      EXPECT_TRUE(backup.ok()) << backup.status();
      ++made;
    }
  });
  for (int i = 200; i < 500; ++i) AddJob(absl::StrCat("j", i));
  done = true;
  thread.join();
  EXPECT_GE(made, 1);
  const auto listed = backups.List();
  ASSERT_TRUE(listed.ok());
  for (const v1::Backup& backup : *listed) EXPECT_TRUE(Backups::Verify(backup).ok());
}

TEST_F(BackupsTest, OldAutomaticOnesGoAndOthersStay) {
  Backups backups = Make(2);
  EXPECT_THAT(Names(backups), IsEmpty());
  ASSERT_TRUE(backups.Create(false).ok());
  for (int i = 0; i < 4; ++i) {
    if (i != 1) clock_.Advance(absl::Hours(24));
    ASSERT_TRUE(backups.Create(true).ok());
  }
  EXPECT_THAT(Names(backups), ElementsAre("backups/20261125T141530Z-auto", "backups/20261124T141530Z-auto",
                                          "backups/20261122T141530Z"));
  // Two backups in the same second.
  ASSERT_TRUE(backups.Create(true).ok());
  EXPECT_THAT(Names(backups), ElementsAre("backups/20261125T141530Z-auto-2", "backups/20261125T141530Z-auto",
                                          "backups/20261122T141530Z"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/backups"), {}), 6);
}

TEST_F(BackupsTest, ADamagedOneIsNoticed) {
  AddJob("a");
  Backups backups = Make();
  const auto made = backups.Create(false);
  ASSERT_TRUE(made.ok());
  {
    std::fstream file(made->path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(9000);
    file << "damage";
  }
  EXPECT_EQ(Backups::Verify(*made).code(), absl::StatusCode::kDataLoss);
}

TEST_F(BackupsTest, OneThatCannotBeMadeLeavesNothing) {
  Backups backups = Make();
  const std::string folder = folder_.path() + "/backups";
  std::ofstream(folder) << "in the way";
  const auto failed = backups.Create(true);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr(folder));
  std::filesystem::remove(folder);
  Backups of_nothing(
      {.folder = folder, .database_path = "/nonexistent/tandem.db", .kept = 1, .clock = &clock_});
  EXPECT_FALSE(of_nothing.Create(true).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(backups.Create(true).ok());
}

TEST_F(BackupsTest, ADaemonThatStopsDoesNotWaitForThem) {
  Backups backups = Make();
  AddJobs(5000);
  backups.Stop();
  EXPECT_EQ(backups.Create(true).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/backups"));
}

TEST_F(BackupsTest, ADaemonThatStopsDoesNotWaitUntilTheyAreReadBack) {
  AddJobs(5000);
  Backups* running = nullptr;
  int copied = 0;
  Backups backups({.folder = folder_.path() + "/backups",
                   .database_path = Database(),
                   .clock = &clock_,
                   .on_damage = [](const absl::Status& damage) { FAIL() << damage; },
                   .on_copied =
                       [&](const std::string& path) {
                         EXPECT_TRUE(std::filesystem::exists(path));
                         ++copied;
                         running->Stop();
                       }});
  running = &backups;
  EXPECT_EQ(backups.Create(true).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(copied, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/backups"));
}

TEST_F(BackupsTest, ACheckThatIsCutOffFindsNoDamage) {
  AddJobs(5000);
  const auto made = Make().Create(false);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const CheckDepth depth : {CheckDepth::kQuick, CheckDepth::kWhole}) {
    Interruption stopped;
    stopped.Request();
    EXPECT_EQ(CheckDatabase(made->path(), depth, &stopped).status().code(), absl::StatusCode::kCancelled);
    // Interrupts at each moment.
    Interruption interruption;
    std::thread thread([&] { interruption.Request(); });
    const auto checked = CheckDatabase(made->path(), depth, &interruption);
    thread.join();
    EXPECT_TRUE(checked.ok() || absl::IsCancelled(checked.status())) << checked.status();
    EXPECT_TRUE(CheckDatabase(made->path(), depth).ok());
  }
}

// A backup reads the whole database, so it must report damage to more than its caller.
TEST_F(BackupsTest, DamageOfTheDatabaseIsTold) {
  AddJobs(1000);
  store_ = nullptr;
  std::vector<absl::Status> told;
  std::function<void(const std::string&)> on_copied;
  Backups backups({.folder = folder_.path() + "/backups",
                   .database_path = Database(),
                   .clock = &clock_,
                   .on_damage = [&](const absl::Status& damage) { told.push_back(damage); },
                   .on_copied =
                       [&](const std::string& path) {
                         if (on_copied != nullptr) on_copied(path);
                       }});
  const auto overwrite = [](const std::string& path, int64_t at, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file << bytes;
  };
  // Damages only the copy.
  on_copied = [&](const std::string& path) { overwrite(path, 4096, std::string(4096, 'x')); };
  EXPECT_EQ(backups.Create(true).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(told, IsEmpty());
  on_copied = nullptr;
  // Damage that is copied without an error and found when the copy is read back.
  {
    auto connection = Connection::Open(Database(), Connection::Access::kReadWrite);
    ASSERT_TRUE((*connection)->Execute("PRAGMA foreign_keys = OFF").ok());
    ASSERT_TRUE((*connection)->Execute("INSERT INTO changes (job, sequence) VALUES (999999, 1)").ok());
  }
  absl::Status failed = backups.Create(true).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(IsDamage(failed)) << failed;
  EXPECT_THAT(told, ElementsAre(failed));
  {
    auto connection = Connection::Open(Database(), Connection::Access::kReadWrite);
    ASSERT_TRUE((*connection)->Execute("DELETE FROM changes").ok());
  }
  EXPECT_TRUE(backups.Create(true).ok());
  // Damage that cannot be copied.
  int64_t root = 0;
  {
    auto connection = Connection::Open(Database(), Connection::Access::kReadWrite);
    root = (*connection)->QueryInt("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").value();
  }
  overwrite(Database(), (root - 1) * 4096, std::string(4096, 'x'));
  told.clear();
  failed = backups.Create(true).status();
  EXPECT_TRUE(IsDamage(failed)) << failed;
  EXPECT_THAT(told, ElementsAre(failed));
  EXPECT_THAT(Names(backups), SizeIs(1));
}

TEST_F(BackupsTest, TheNewestHasAnAge) {
  Backups backups = Make();
  EXPECT_EQ(backups.NewestAge(), std::nullopt);
  ASSERT_TRUE(backups.Create(false).ok());
  clock_.Advance(absl::Hours(24));
  EXPECT_EQ(backups.NewestAge(), absl::Hours(24));
  ASSERT_TRUE(backups.Create(true).ok());
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(backups.NewestAge(), absl::Hours(1));
  // The clock was ahead during that backup.
  clock_.Advance(-absl::Hours(2));
  EXPECT_EQ(backups.NewestAge(), absl::Hours(23));
}

TEST(BackupScheduleTest, IsDueByTheNewestWhateverTheClockDid) {
  const absl::Time now = absl::FromUnixSeconds(1000000);
  EXPECT_EQ(UntilNextBackup(now - absl::Hours(1), now, absl::Hours(24)), absl::Hours(23));
  EXPECT_EQ(UntilNextBackup(now - absl::Hours(25), now, absl::Hours(24)), absl::ZeroDuration());
  EXPECT_EQ(UntilNextBackup(absl::InfinitePast(), now, absl::Hours(24)), absl::ZeroDuration());
  // The clock was ten years ahead during the backup.
  EXPECT_EQ(UntilNextBackup(now + absl::Hours(24 * 3650), now, absl::Hours(24)), absl::ZeroDuration());
}

TEST_F(BackupsTest, OneOfTheFuturePushesOutNoOther) {
  Backups backups = Make(/*kept=*/1);
  clock_.Advance(absl::Hours(24));
  const auto future = backups.Create(true);
  ASSERT_TRUE(future.ok()) << future.status();
  clock_.Advance(-absl::Hours(24));
  const auto now = backups.Create(true);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_TRUE(std::filesystem::exists(now->path()));
  EXPECT_TRUE(std::filesystem::exists(future->path()));
  // When its time has come, it counts.
  clock_.Advance(absl::Hours(25));
  ASSERT_TRUE(backups.Create(true).ok());
  EXPECT_FALSE(std::filesystem::exists(now->path()));
  EXPECT_FALSE(std::filesystem::exists(future->path()));
}

TEST_F(BackupsTest, TheScheduleMakesThem) {
  Backups backups = Make(2);
  Awaited<absl::StatusOr<v1::Backup>> heard;
  BackupSchedule schedule(&backups, absl::Milliseconds(50), Clock::Real(),
                          [done = heard.Done()](const auto& made) mutable { done(made); });
  const auto made = heard.Get();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->automatic());
  EXPECT_THAT(made->name(), EndsWith("-auto"));
  schedule.Stop();
}

}  // namespace
}  // namespace tandem
