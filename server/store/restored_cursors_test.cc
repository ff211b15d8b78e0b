#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/recovery.h"
#include "server/store/recovery_fixture.h"
#include "server/store/store.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// The cursors of changes after restorations.
class RestoredCursorsTest : public RecoveryFixture {
 protected:
  std::string BackUp() {
    const auto backup = backups_.Create(false);
    EXPECT_TRUE(backup.ok()) << backup.status();
    return backup.ok() ? backup->path() : "";
  }

  void Restore(const std::string& backup) {
    Restoration wanted;
    wanted.backup_path = backup;
    const auto restored = RestoreDatabase(
        Path(), wanted, [](const std::string&) { return 0; }, &clock_);
    ASSERT_TRUE(restored.ok()) << restored.status();
  }

  int64_t NowUs() const { return absl::ToUnixMicros(clock_.Now()); }

  // Adds a job and returns its change's cursor, the newest.
  static int64_t Add(Store& store, const std::string& id) {
    AddJob(store, id);
    const auto changes = store.ReadChanges(0, 1000);
    EXPECT_TRUE(changes.ok() && !changes->changes.empty()) << changes.status();
    if (!changes.ok() || changes->changes.empty()) return 0;
    EXPECT_EQ(changes->changes.back().event.job(), "jobs/" + id);
    EXPECT_EQ(changes->changes.back().cursor, changes->newest_cursor);
    return changes->newest_cursor;
  }

  // Returns the jobs of the changes that a watcher at `cursor` gets.
  static std::vector<std::string> JobsAfter(Store& store, int64_t cursor) {
    const auto changes = store.ReadChanges(cursor, 1000);
    EXPECT_TRUE(changes.ok()) << changes.status();
    // A watcher ahead of the log gets an error.
    EXPECT_TRUE(changes.ok() && cursor <= changes->newest_cursor);
    std::vector<std::string> jobs;
    if (!changes.ok()) return jobs;
    for (const JobChange& change : changes->changes) jobs.push_back(change.event.job());
    return jobs;
  }
};

TEST_F(RestoredCursorsTest, TwoRestorationsOfABackupHaveOtherCursors) {
  std::string backup;
  {
    const auto store = Open();
    EXPECT_EQ(Add(*store, "a"), 1);
    backup = BackUp();
    EXPECT_EQ(Add(*store, "lost"), 2);
  }
  Restore(backup);
  int64_t first = 0;
  {
    const auto store = Open();
    EXPECT_THAT(JobsAfter(*store, 2), ElementsAre());
    first = Add(*store, "b");
    EXPECT_EQ(first, NowUs() + 1);
    EXPECT_THAT(JobsAfter(*store, 2), ElementsAre("jobs/b"));
  }
  clock_.Advance(absl::Milliseconds(1));
  Restore(backup);
  const auto store = Open();
  EXPECT_THAT(JobsAfter(*store, first), ElementsAre());
  EXPECT_EQ(Add(*store, "c"), NowUs() + 1);
  EXPECT_THAT(JobsAfter(*store, first), ElementsAre("jobs/c"));
}

// The backup's own cursors are almost as new as the clock.
TEST_F(RestoredCursorsTest, ABackupOfARestoredDatabaseCanBeRestoredTwice) {
  { EXPECT_EQ(Add(*Open(), "a"), 1); }
  Restore(BackUp());
  { Add(*Open(), "b"); }
  clock_.Advance(absl::Seconds(1));
  const std::string backup = BackUp();
  int64_t newest = 0;
  for (const std::string id : {"c", "d", "e"}) {
    clock_.Advance(absl::Seconds(1));
    Restore(backup);
    const auto store = Open();
    if (newest > 0) EXPECT_THAT(JobsAfter(*store, newest), ElementsAre());
    newest = Add(*store, id);
    EXPECT_EQ(newest, NowUs() + 1);
  }
}

TEST_F(RestoredCursorsTest, ABackupFromBeforeTheFirstJobDoesNotBeginAgain) {
  std::string backup;
  {
    const auto store = Open();
    backup = BackUp();
    Add(*store, "a");
    Add(*store, "b");
    EXPECT_EQ(Add(*store, "c"), 3);
  }
  Restore(backup);
  const auto store = Open();
  EXPECT_THAT(JobsAfter(*store, 3), ElementsAre());
  for (const std::string id : {"d", "e", "f"}) Add(*store, id);
  EXPECT_THAT(JobsAfter(*store, 3), ElementsAre("jobs/d", "jobs/e", "jobs/f"));
  EXPECT_THAT(JobsAfter(*store, 0), ElementsAre("jobs/d", "jobs/e", "jobs/f"));
}

TEST_F(RestoredCursorsTest, CursorsGoOnIfTheClockWasSetBack) {
  { EXPECT_EQ(Add(*Open(), "a"), 1); }
  Restore(BackUp());
  std::string backup;
  int64_t watcher = 0;
  {
    const auto store = Open();
    const int64_t kept = Add(*store, "b");
    clock_.Advance(absl::Seconds(1));
    backup = BackUp();
    watcher = Add(*store, "lost");
    EXPECT_EQ(watcher, kept + 1);
  }
  clock_.Advance(-absl::Hours(24));
  Restore(backup);
  const auto store = Open();
  EXPECT_THAT(JobsAfter(*store, watcher), ElementsAre());
  Add(*store, "c");
  EXPECT_THAT(JobsAfter(*store, watcher), ElementsAre("jobs/c"));
}

}  // namespace
}  // namespace tandem
