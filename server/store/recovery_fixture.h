#ifndef TANDEM_SERVER_STORE_RECOVERY_FIXTURE_H_
#define TANDEM_SERVER_STORE_RECOVERY_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/backups.h"
#include "server/store/recovery.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {

// For tests of PrepareDatabase and RestoreDatabase: a database in its own folder, its backups and a clock.
class RecoveryFixture : public testing::Test {
 protected:
  RecoveryFixture()
      : backups_(
            {.folder = folder_.path() + "/backups", .database_path = Path(), .kept = 5, .clock = &clock_}) {}

  std::string Path() const { return folder_.path() + "/tandem.db"; }

  absl::StatusOr<std::optional<Restoration>> Prepare(const std::string& remains = "",
                                                     absl::Span<const Migration> migrations = Migrations()) {
    return PrepareDatabase(
        Path(), &backups_, [this](const std::string& id) { return attempts_[id]; }, remains, &clock_,
        migrations);
  }
  // Prepares and opens the database. Both must succeed.
  std::unique_ptr<Store> Open() {
    const auto prepared = Prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    auto store = Store::Open(Path());
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static absl::Status Write(Store& store, std::function<absl::Status(Transaction&)> body) {
    Awaited<absl::Status> done;
    store.Write(std::move(body), done.Done());
    return done.Get();
  }
  // Adds a job with `events` events and a change.
  static void AddJob(Store& store, const std::string& id, int events = 3, int32_t attempt = 1) {
    const absl::Status status = Write(store, [&](Transaction& transaction) -> absl::Status {
      StoredJob job;
      job.job.set_name(JobName(id));
      job.job.set_state(v1::JOB_STATE_RUNNING);
      job.job.set_attempt(attempt);
      job.job.mutable_spec()->set_name(id);
      job.last_worker_sequence = 7;
      TANDEM_RETURN_IF_ERROR(transaction.InsertJob(&job, "", {}));
      for (int i = 1; i <= events; ++i) {
        v1::JobEvent event;
        event.set_job(job.job.name());
        event.set_sequence(i);
        event.mutable_notice()->set_message(std::string(500, 'e'));
        TANDEM_RETURN_IF_ERROR(transaction.AppendEvent(job, event));
      }
      return transaction.AppendChange(job, 1).status();
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  // Overwrites a page of the database.
  void Damage(int64_t page, int64_t at = 0) {
    std::fstream file(Path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(page * 4096 + at);
    file << std::string(200, 'x');
  }
  // Returns the mark, which must exist.
  Restoration Last() const {
    const auto last = LastRestoration(Path());
    EXPECT_TRUE(last.ok() && last->has_value()) << last.status();
    return last.ok() && last->has_value() ? **last : Restoration();
  }
  int64_t Pages() const { return static_cast<int64_t>(std::filesystem::file_size(Path())) / 4096; }
  std::string Only(const std::string& prefix) {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().rfind(prefix, 0) == 0) found = entry.path().string();
    }
    return found;
  }

  TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1795356930)};
  std::map<std::string, int32_t> attempts_;
  Backups backups_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RECOVERY_FIXTURE_H_
