#include "server/store/recovery.h"
#include "server/store/restoration_mark.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/connection.h"
#include "server/store/recovery_fixture.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RecoveryTest : public RecoveryFixture {
 protected:
  void SetSchema(int version) {
    const auto connection = Connection::Open(Path(), Connection::Access::kReadWrite);
    ASSERT_TRUE((*connection)->Execute(absl::StrCat("PRAGMA user_version = ", version)).ok());
  }
};

TEST_F(RecoveryTest, AWholeDatabaseIsLeftAlone) {
  { AddJob(*Open(), "a"); }
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_FALSE(prepared->has_value());
  EXPECT_EQ(Only("tandem.db.damaged"), "");
  EXPECT_TRUE(Open()->GetJob("a").ok());
}

// For each overwritten page, the next start finds the damage, or all reads are right.
TEST_F(RecoveryTest, ADamagedPageIsFoundAndTheBackupTakesItsPlace) {
  {
    const auto store = Open();
    for (int i = 0; i < 20; ++i) AddJob(*store, absl::StrCat("j", i), 20);
    ASSERT_TRUE(backups_.Create(true).ok());
    AddJob(*store, "later");
  }
  const std::string whole = folder_.path() + "/whole";
  std::filesystem::copy_file(Path(), whole);
  const int64_t pages = Pages();
  ASSERT_GT(pages, 40);
  int found = 0;
  for (int64_t page = 0; page < pages; ++page) {
    SCOPED_TRACE(absl::StrCat("page ", page));
    std::filesystem::copy_file(whole, Path(), std::filesystem::copy_options::overwrite_existing);
    Damage(page);
    clock_.Advance(absl::Seconds(1));
    const auto prepared = Prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    auto store = Store::Open(Path());
    ASSERT_TRUE(store.ok()) << store.status();
    if (prepared->has_value()) {
      ++found;
      EXPECT_THAT((*prepared)->damage, HasSubstr("tandem.db"));
      EXPECT_THAT((*prepared)->aside, StartsWith(Path() + ".damaged-"));
      EXPECT_TRUE(std::filesystem::exists((*prepared)->aside));
      EXPECT_EQ(absl::ToUnixSeconds((*prepared)->backup_time), 1795356930);
      EXPECT_FALSE((*store)->GetJob("later").ok());
    } else {
      EXPECT_TRUE((*store)->GetJob("later").ok());
    }
    for (int i = 0; i < 20; ++i) {
      const auto events = (*store)->ReadEvents(absl::StrCat("j", i), 0, 100);
      ASSERT_TRUE(events.ok()) << events.status();
      ASSERT_EQ(events->events.size(), 20);
      for (int k = 0; k < 20; ++k) {
        ASSERT_EQ(events->events[k].sequence(), k + 1);
        ASSERT_EQ(events->events[k].notice().message(), std::string(500, 'e'));
      }
    }
  }
  std::cout << found << " of " << pages << " pages\n";
  // All pages except free pages.
  EXPECT_GE(found, pages - 3);
}

TEST_F(RecoveryTest, ACutOffFileIsFound) {
  {
    const auto store = Open();
    AddJob(*store, "a", 50);
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  const int64_t pages = Pages();
  for (const int64_t kept : {pages - 1, pages / 2, int64_t{1}, int64_t{0}}) {
    SCOPED_TRACE(kept);
    std::filesystem::resize_file(Path(), kept * 4096);
    clock_.Advance(absl::Seconds(1));
    const auto prepared = Prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_TRUE(prepared->has_value());
    EXPECT_TRUE(Open()->GetJob("a").ok());
  }
}

TEST_F(RecoveryTest, ADamagedBackupIsPassedOver) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
    AddJob(*store, "b");
    clock_.Advance(absl::Hours(1));
    const auto newer = backups_.Create(true);
    ASSERT_TRUE(newer.ok());
    std::filesystem::resize_file(newer->path(), 5000);
  }
  Damage(1);
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_TRUE(prepared->has_value());
  EXPECT_EQ(absl::ToUnixSeconds((*prepared)->backup_time), 1795356930);
  const auto store = Open();
  EXPECT_TRUE(store->GetJob("a").ok());
  EXPECT_FALSE(store->GetJob("b").ok());
}

TEST_F(RecoveryTest, ABackupOfANewerSchemaIsPassedOver) {
  std::string older;
  {
    const auto store = Open();
    AddJob(*store, "a");
    older = backups_.Create(true)->path();
    AddJob(*store, "b");
  }
  SetSchema(900);
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(backups_.Create(true).ok());
  Damage(1);
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_TRUE(prepared->has_value());
  EXPECT_EQ((*prepared)->backup_path, older);
  const auto store = Open();
  EXPECT_TRUE(store->GetJob("a").ok());
  EXPECT_FALSE(store->GetJob("b").ok());
}

TEST_F(RecoveryTest, IfNoBackupCanBeRestoredTheNewestOnesErrorIsReturned) {
  AddJob(*Open(), "a");
  for (const int schema : {800, 900}) {
    SetSchema(schema);
    clock_.Advance(absl::Hours(1));
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  Damage(1);
  const absl::Status refused = Prepare().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("900"));
}

TEST_F(RecoveryTest, WithoutABackupNothingIsTouched) {
  { AddJob(*Open(), "a"); }
  Damage(1);
  const std::string before = *Env::Real()->ReadFile(Path());
  const auto prepared = Prepare();
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(prepared.status().message()),
              AllOf(HasSubstr(Path()), HasSubstr("no undamaged backup"), HasSubstr("--restore-backup")));
  EXPECT_EQ(*Env::Real()->ReadFile(Path()), before);
}

TEST_F(RecoveryTest, WhatCameSinceTheBackupIsNotConfusedWithWhatComesNext) {
  int64_t cursor = 0;
  {
    const auto store = Open();
    AddJob(*store, "a", 3, 1);
    AddJob(*store, "b", 3, 5);
    for (const std::string id : {"a", "b"}) {
      StoredJob job = *store->GetJob(id);
      job.job.mutable_cluster_attempt()->set_id("4711");
      ASSERT_TRUE(Write(*store, [&](Transaction& transaction) { return transaction.UpdateJob(&job); }).ok());
    }
    ASSERT_TRUE(
        Write(*store, [](Transaction& transaction) { return transaction.ReserveJobId("forked"); }).ok());
    ASSERT_TRUE(backups_.Create(true).ok());
    AddJob(*store, "forked");
    cursor = store->ReadChanges(0, 10)->newest_cursor;
  }
  Damage(1);
  // Its worker was restarted since.
  attempts_ = {{"a", 4}, {"b", 5}};
  const auto store = Open();
  EXPECT_EQ(store->GetJob("a")->job.attempt(), 4);
  EXPECT_EQ(store->GetJob("a")->last_worker_sequence, 0);
  EXPECT_FALSE(store->GetJob("a")->job.has_cluster_attempt());
  EXPECT_EQ(store->GetJob("b")->job.attempt(), 5);
  EXPECT_EQ(store->GetJob("b")->last_worker_sequence, 7);
  EXPECT_EQ(store->GetJob("b")->job.cluster_attempt().id(), "4711");
  EXPECT_EQ(store->GetJob("b")->job.spec().name(), "b");
  // Its folder must not count as a deleted job's.
  EXPECT_FALSE(*store->WasDeleted("forked"));
  AddJob(*store, "new");
  const auto changes = store->ReadChanges(cursor, 10);
  ASSERT_EQ(changes->changes.size(), 1);
  EXPECT_EQ(changes->changes[0].event.job(), "jobs/new");
}

TEST_F(RecoveryTest, WhatIsNoBackupIsNamedAndLeavesNothing) {
  { AddJob(*Open(), "a"); }
  Restoration wanted;
  wanted.backup_path = folder_.path() + "/passwd";
  std::ofstream(wanted.backup_path) << std::string(5000, 'x');
  const absl::Status refused = RestoreDatabase(
                                   Path(), wanted, [](const std::string&) { return 0; }, &clock_)
                                   .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), StartsWith("cannot restore " + wanted.backup_path + ": "));
  EXPECT_THAT(refused.message(), testing::Not(HasSubstr("restoring")));
  EXPECT_FALSE(std::filesystem::exists(Path() + ".restoring"));
  EXPECT_TRUE(Open()->GetJob("a").ok());
}

TEST_F(RecoveryTest, ARestorationThatWasCutOffGoesOn) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
    AddJob(*store, "b");
  }
  // The machine stopped after the copy was ready: before or after the database was moved aside.
  for (const bool aside : {false, true}) {
    std::filesystem::copy_file(backups_.List()->front().path(), Path() + ".restored");
    if (aside) std::filesystem::rename(Path(), Path() + ".damaged-x");
    clock_.Advance(absl::Seconds(1));
    const auto prepared = Prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    ASSERT_TRUE(prepared->has_value());
    EXPECT_EQ((*prepared)->aside.empty(), aside);
    EXPECT_EQ(Last().time, clock_.Now());
    const auto store = Open();
    EXPECT_TRUE(store->GetJob("a").ok());
    EXPECT_FALSE(store->GetJob("b").ok());
  }
}

// Otherwise the database would be moved aside without its log, which was moved before.
TEST_F(RecoveryTest, AnotherRestorationFirstFinishesTheOneThatWasCutOff) {
  std::string backup;
  {
    const auto store = Open();
    AddJob(*store, "a");
    backup = backups_.Create(false)->path();
  }
  std::filesystem::copy_file(backup, Path() + ".restored");
  Restoration pending;
  pending.backup_path = backup;
  pending.aside = Path() + ".damaged-x";
  ASSERT_TRUE(WriteRestorationMark(Path() + ".restoring-mark", pending).ok());
  std::ofstream(pending.aside + "-wal") << "its log";
  Restoration wanted;
  wanted.backup_path = backup;
  const auto restored = RestoreDatabase(
      Path(), wanted, [](const std::string&) { return 0; }, &clock_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(std::filesystem::exists(pending.aside));
  EXPECT_NE(restored->aside, pending.aside);
  EXPECT_TRUE(Open()->GetJob("a").ok());
}

// This program's schema, plus steps of a later program.
std::vector<Migration> WithSteps(const std::vector<Migration>& next) {
  std::vector<Migration> migrations(Migrations().begin(), Migrations().end());
  migrations.insert(migrations.end(), next.begin(), next.end());
  return migrations;
}

// Tests a migration by a later program, and the way back.
TEST_F(RecoveryTest, TheSchemaIsBroughtUpAfterABackupWhichIsTheWayBack) {
  const int64_t version = static_cast<int64_t>(Migrations().size());
  const std::vector<Migration> later =
      WithSteps({{"next.sql", "ALTER TABLE jobs ADD COLUMN extra INTEGER NOT NULL DEFAULT 8;"}});
  const auto query = [](const std::string& path, const std::string& sql) {
    const auto connection = Connection::Open(path, Connection::Access::kReadWrite);
    return (*connection)->QueryInt(sql).value();
  };
  const auto none = [](const std::string&) { return 0; };
  { AddJob(*Open(), "a"); }
  const auto prepared = Prepare("", later);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_FALSE(prepared->has_value());
  const auto made = backups_.List();
  ASSERT_EQ(made->size(), 1);
  EXPECT_TRUE((*made)[0].automatic());
  EXPECT_EQ(query((*made)[0].path(), "PRAGMA user_version"), version);
  {
    const auto store = Store::Open(Path(), {.migrations = later});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->GetJob("a").ok());
  }
  EXPECT_EQ(query(Path(), "PRAGMA user_version"), version + 1);
  EXPECT_EQ(query(Path(), "SELECT extra FROM jobs"), 8);

  // This program refuses the database and changes nothing.
  const std::string bytes = *Env::Real()->ReadFile(Path());
  for (const absl::Status& refused : {Prepare().status(), Store::Open(Path()).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("a newer tandemd wrote it"));
  }
  EXPECT_EQ(*Env::Real()->ReadFile(Path()), bytes);

  // With the backup, this program can continue.
  Restoration wanted;
  wanted.backup_path = (*made)[0].path();
  ASSERT_TRUE(RestoreDatabase(Path(), wanted, none, &clock_).ok());
  EXPECT_TRUE(Open()->GetJob("a").ok());
  EXPECT_EQ(query(Path(), "PRAGMA user_version"), version);
  // The later program also migrates a restored backup.
  ASSERT_TRUE(RestoreDatabase(Path(), wanted, none, &clock_, later).ok());
  EXPECT_EQ(query(Path(), "SELECT extra FROM jobs"), 8);
}

// A service manager restarts a daemon whose migration keeps failing.
TEST_F(RecoveryTest, AMigrationThatFailsHasOneBackupAndPushesNoOtherOut) {
  const std::vector<Migration> second = WithSteps({{"second.sql", "CREATE TABLE second (x INTEGER);"}});
  const std::vector<Migration> third = WithSteps({second.back(), {"third.sql", "CREATE NONSENSE;"}});
  std::vector<std::string> daily;
  {
    const auto store = Open();
    AddJob(*store, "a");
    for (int i = 0; i < 5; ++i) {
      daily.push_back(backups_.Create(true)->path());
      clock_.Advance(absl::Hours(24));
    }
  }
  const auto fail = [&] {
    const auto prepared = Prepare("", third);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    const auto store = Store::Open(Path(), {.migrations = third});
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(std::string(store.status().message()), HasSubstr("migration third.sql"));
  };
  std::vector<std::string> made;
  const auto others = [&] {
    std::vector<std::string> found;
    const auto listed = backups_.List();
    for (const v1::Backup& backup : *listed) {
      if (std::find(daily.begin(), daily.end(), backup.path()) == daily.end()) found.push_back(backup.path());
    }
    return found;
  };
  for (int i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(fail());
    clock_.Advance(absl::Seconds(1));
    ASSERT_EQ(backups_.List()->size(), 6);
    if (i == 0) made = others();
    EXPECT_EQ(others(), made);
  }
  for (const std::string& path : daily) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  // A damaged backup does not count.
  std::filesystem::resize_file(made[0], 5000);
  ASSERT_NO_FATAL_FAILURE(fail());
  EXPECT_NE(others(), made);
  EXPECT_EQ(others().size(), 1);
  made = others();
  // Nor does a backup from before a change.
  clock_.Advance(absl::Seconds(1));
  {
    const auto connection = Connection::Open(Path(), Connection::Access::kReadWrite);
    ASSERT_TRUE((*connection)->Execute("UPDATE jobs SET last_worker_sequence = 8").ok());
  }
  ASSERT_NO_FATAL_FAILURE(fail());
  EXPECT_NE(others(), made);
  EXPECT_EQ(others().size(), 1);
  made = others();
  // Each version has its own backup.
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(Store::Open(Path(), {.migrations = second}).ok());
  ASSERT_NO_FATAL_FAILURE(fail());
  EXPECT_EQ(others().size(), 2);
  EXPECT_TRUE(std::filesystem::exists(made[0]));
  for (const std::string& path : daily) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(RecoveryTest, ANewerSchemaIsRefusedAndLeftAlone) {
  {
    AddJob(*Open(), "a");
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  SetSchema(900);
  const auto prepared = Prepare();
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(prepared.status().message()),
              AllOf(HasSubstr("a newer tandemd wrote it"), HasSubstr("900"), HasSubstr(Path())));
  EXPECT_EQ(backups_.List()->size(), 1);
}

TEST_F(RecoveryTest, RestoresWhatIsAskedFor) {
  std::string backup;
  {
    const auto store = Open();
    AddJob(*store, "a");
    backup = backups_.Create(false)->path();
    AddJob(*store, "b");
  }
  const std::string bytes = *Env::Real()->ReadFile(backup);
  EXPECT_FALSE(LastRestoration(Path())->has_value());
  Restoration wanted;
  wanted.backup_path = backup;
  wanted.backup_time = clock_.Now() - absl::Hours(1);
  const auto restored = RestoreDatabase(
      Path(), wanted, [](const std::string&) { return 0; }, &clock_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->aside, Path() + ".damaged-20261122T141530Z");
  EXPECT_EQ(*Env::Real()->ReadFile(backup), bytes);
  EXPECT_FALSE(Open()->GetJob("b").ok());
  // The next daemon learns of the restoration.
  EXPECT_EQ(Last().backup_path, backup);
  EXPECT_EQ(Last().backup_time, wanted.backup_time);
  EXPECT_EQ(Last().aside, restored->aside);
  EXPECT_EQ(Last().damage, "");
  EXPECT_EQ(Last().time, clock_.Now());
  EXPECT_FALSE(Last().told);

  wanted.backup_path = folder_.path() + "/other";
  std::ofstream(wanted.backup_path) << "something else entirely, and long enough to be read";
  clock_.Advance(absl::Hours(1));
  const auto refused = RestoreDatabase(
      Path(), wanted, [](const std::string&) { return 0; }, &clock_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(Open()->GetJob("a").ok());
  EXPECT_EQ(Last().backup_path, backup);
}

TEST_F(RecoveryTest, ARestorationIsRememberedForEver) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  const std::string backup = backups_.List()->front().path();
  Damage(1);
  const absl::Time first = clock_.Now();
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_TRUE(prepared->has_value());
  clock_.Advance(absl::Hours(1));
  // The same if the daemon died before it reported the restoration.
  EXPECT_FALSE(Prepare()->has_value());
  const Restoration last = Last();
  EXPECT_EQ(last.time, first);
  EXPECT_EQ(last.backup_path, backup);
  EXPECT_EQ(absl::ToUnixSeconds(last.backup_time), 1795356930);
  EXPECT_EQ(last.aside, (*prepared)->aside);
  EXPECT_EQ(last.damage, (*prepared)->damage);
  EXPECT_THAT(last.damage, HasSubstr("tandem.db"));
  EXPECT_FALSE(last.told);
  ASSERT_TRUE(NoteTold(Path()).ok());
  EXPECT_TRUE(Last().told);
  EXPECT_EQ(Last().time, first);

  // Times before the first restoration are also before the second, whatever the clock shows.
  clock_.Advance(-absl::Hours(24));
  Damage(1);
  ASSERT_TRUE(Prepare()->has_value());
  EXPECT_EQ(Last().time, first);
  EXPECT_FALSE(Last().told);
}

// Otherwise files from before the restoration would be removed, or nothing would ever be removed, and
// NoteTold would make that permanent.
TEST_F(RecoveryTest, AMarkThatCannotBeReadIsAnErrorUntilSomebodyMendsIt) {
  std::string backup;
  {
    const auto store = Open();
    AddJob(*store, "a");
    backup = backups_.Create(false)->path();
  }
  const std::string mark = Path() + ".restoration";
  Restoration wanted;
  wanted.backup_path = backup;
  const auto none = [](const std::string&) { return 0; };
  ASSERT_TRUE(RestoreDatabase(Path(), wanted, none, &clock_).ok());
  const auto expect_refused = [&](const absl::Status& status) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(mark), HasSubstr("time=2026-")));
  };
  const auto expect_all_refused = [&] {
    expect_refused(LastRestoration(Path()).status());
    expect_refused(NoteTold(Path()));
    expect_refused(Prepare().status());
    expect_refused(RestoreDatabase(Path(), wanted, none, &clock_).status());
    // Nothing was started either.
    EXPECT_FALSE(std::filesystem::exists(Path() + ".restored"));
  };
  for (const char* content :
       {"time=yesterday", "", "told=yes\n", "time=2026-11-22T14:15:30Z\nbackup_time=x\n",
        "time=infinite-future\nbackup_time=infinite-past\ntold=yes\n"}) {
    SCOPED_TRACE(content);
    std::ofstream(mark, std::ios::trunc) << content;
    expect_all_refused();
    EXPECT_EQ(*Env::Real()->ReadFile(mark), content);
  }
  // An error of the file system is no restoration in the future either.
  std::filesystem::remove(mark);
  std::filesystem::create_directory(mark);
  expect_all_refused();
  std::filesystem::remove(mark);

  // The remedy in the error.
  std::ofstream(mark) << "time=2026-01-31T12:00:00Z\n";
  const auto mended = LastRestoration(Path());
  ASSERT_TRUE(mended.ok() && mended->has_value()) << mended.status();
  EXPECT_EQ((*mended)->time, absl::FromCivil(absl::CivilSecond(2026, 1, 31, 12), absl::UTCTimeZone()));
  EXPECT_EQ((*mended)->backup_time, absl::InfinitePast());
  EXPECT_FALSE((*mended)->told);
  EXPECT_TRUE(NoteTold(Path()).ok());
  EXPECT_TRUE((*LastRestoration(Path()))->told);
  EXPECT_TRUE(Open()->GetJob("a").ok());
}

TEST_F(RecoveryTest, ACutOffRestorationWhoseMarkCannotBeReadWaits) {
  std::string backup;
  {
    const auto store = Open();
    AddJob(*store, "a");
    backup = backups_.Create(false)->path();
  }
  std::filesystem::copy_file(backup, Path() + ".restored");
  std::ofstream(Path() + ".restoring-mark") << "torn";
  const auto refused = Prepare();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(Path() + ".restoring-mark"));
  EXPECT_EQ(Only("tandem.db.damaged"), "");
  std::filesystem::remove(Path() + ".restoring-mark");
  EXPECT_TRUE(Open()->GetJob("a").ok());
}

TEST_F(RecoveryTest, WhatWasSuspectedIsLookedAtWhole) {
  {
    const auto store = Open();
    AddJob(*store, "a");
    ASSERT_TRUE(backups_.Create(true).ok());
  }
  {
    // A quick check does not find an index that disagrees with its table.
    const auto connection = Connection::Open(Path(), Connection::Access::kReadWrite);
    ASSERT_TRUE((*connection)->Execute("PRAGMA writable_schema = ON").ok());
    ASSERT_TRUE((*connection)
                    ->Execute("UPDATE sqlite_master SET sql = 'CREATE INDEX jobs_by_state ON jobs (number)' "
                              "WHERE name = 'jobs_by_state'")
                    .ok());
  }
  const auto quick = Prepare();
  ASSERT_TRUE(quick.ok()) << quick.status();
  ASSERT_FALSE(quick->has_value());
  SuspectDatabase(Path(), "a read failed");
  const auto whole = Prepare();
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(whole->has_value());
  EXPECT_THAT((*whole)->damage, HasSubstr("jobs_by_state"));
  EXPECT_FALSE(std::filesystem::exists(Path() + ".suspect"));
  EXPECT_FALSE(Prepare()->has_value());
}

}  // namespace
}  // namespace tandem
