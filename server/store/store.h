#ifndef TANDEM_SERVER_STORE_STORE_H_
#define TANDEM_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/migrator.h"
#include "server/store/records.h"
#include "server/store/scheduling_records.h"
#include "server/store/transaction.h"

namespace tandem {

class Connection;
class GroupWriter;
class ReaderPool;

// Jobs and their logs in an SQLite database (write-ahead log, full sync). Thread-safe.
//
// One thread writes, and commits waiting writes together with one sync. Readers have their own connections,
// see only committed data, and never wait for the writer.
class Store {
 public:
  struct Options {
    // The name of SQLite's file system (see EnvVfs). Empty: the default.
    std::string vfs = "";
    // Called if the database is found damaged while in use. Called on any thread, perhaps often.
    std::function<void(const absl::Status&)> on_damage = nullptr;
    // Called if the database's file was removed or replaced while in use. From then on nothing is written,
    // and all writes get UNAVAILABLE. `connection` still has all data, without an open transaction. Returns
    // true if the data were saved. Otherwise called again with later writes, including Probe. Runs on the
    // writer thread.
    std::function<bool(const absl::Status& status, Connection* connection)> on_lost = nullptr;
    // The number of pages after which SQLite moves the write-ahead log into the database.
    int checkpoint_pages = 1000;
    // The steps of the schema. Tests pass others.
    absl::Span<const Migration> migrations = Migrations();
  };

  // Opens the database. Creates or migrates it in one transaction. FAILED_PRECONDITION: a newer version wrote
  // it, or another process holds it. DATA_LOSS: it is damaged.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& database_path,
                                                     const Options& options);
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& database_path) {
    return Open(database_path, Options());
  }

  // Calls Close.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  using Body = absl::AnyInvocable<absl::Status(Transaction&)>;
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // Runs `body` on the writer thread in its own transaction (a savepoint in the group's). If `body` returns
  // an error, its changes are undone. Then calls `done` once on the writer thread: with OK when the changes
  // are durable, with the body's error, or with the commit's error. After a failed commit, the changes are
  // undone and not retried. Bodies and `done`s run in the order of the calls to Write. In a `done`, reads see
  // its changes. Neither may block; both may call Write. After Close, `done` gets UNAVAILABLE on the caller's
  // thread.
  void Write(Body body, Done done);

  // Sets the observer of commits; null: none. Gets each commit's duration, number of writes and status.
  // Called on the writer thread, so it must not block.
  void SetCommitObserver(
      std::function<void(absl::Duration duration, int writes, const absl::Status&)> observer);

  // Writes and syncs a page without changing the data, so that `done` tells if the disk accepts writes.
  // Contract as Write.
  void Probe(Done done);

  // Removes the events of deleted jobs, in pieces, with other writes in between. If the store is closed
  // before the end, the rest is removed after the next Open.
  void RemoveDeleted();

  // Finishes all pending writes, and refuses later writes. Idempotent. Must not be called in a body or a
  // `done`.
  void Close();

  // NOT_FOUND: no such job. `waiting` is never set.
  absl::StatusOr<StoredJob> GetJob(absl::string_view id);
  // INVALID_ARGUMENT: the page token belongs to another query.
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query);
  // Calls `visit` with each job that has not ended, oldest first, one at a time, because all their specs
  // together may exceed memory. All jobs are from one snapshot. An error may come after some jobs. `visit`
  // must not call the store.
  absl::Status VisitNonTerminalJobs(absl::FunctionRef<void(StoredJob)> visit);
  // Returns the same jobs, without their specs.
  absl::StatusOr<std::vector<StoredJob>> NonTerminalJobs();
  // Returns the number of jobs in each state, without zeros.
  absl::StatusOr<std::map<v1::JobState, int64_t>> CountJobs();
  // Returns true if a job with this id existed and was deleted.
  absl::StatusOr<bool> WasDeleted(absl::string_view id);
  // Returns the job that was created for this request id; nullopt if none.
  absl::StatusOr<std::optional<StoredRequest>> FindRequest(absl::string_view request_id);
  // Returns at most `limit` events after a sequence number. Returns fewer, but at least one, if they have
  // more than `most_bytes` serialized bytes together. NOT_FOUND: no such job.
  absl::StatusOr<EventPage> ReadEvents(absl::string_view id, int64_t after_sequence, int limit,
                                       int64_t most_bytes = std::numeric_limits<int64_t>::max());
  // Calls `visit` with at most `limit` events after a sequence number, in order, until it returns false. The
  // event is valid during the call, and `visit` must not call the store. Returns the job's newest sequence
  // number. NOT_FOUND: no such job. Takes the memory of one event.
  absl::StatusOr<int64_t> VisitEvents(absl::string_view id, int64_t after_sequence, int limit,
                                      absl::FunctionRef<bool(const v1::JobEvent&)> visit);
  // Returns at most `limit` changes after a cursor. Returns fewer, but at least one, if their events have
  // more than `most_bytes` serialized bytes together.
  absl::StatusOr<ChangePage> ReadChanges(int64_t after_cursor, int limit,
                                         int64_t most_bytes = std::numeric_limits<int64_t>::max());
  // Returns a job's kept checkpoints, newest first. NOT_FOUND: no such job.
  absl::StatusOr<std::vector<v1::Checkpoint>> Checkpoints(absl::string_view id);
  // NOT_FOUND: no such sweep.
  absl::StatusOr<StoredSweep> GetSweep(absl::string_view id);
  // Returns at most `limit` sweeps with numbers below `before` (0: all), newest first. Returns fewer, but at
  // least one, if they have more than `most_jobs` jobs together.
  absl::StatusOr<SweepPage> ListSweeps(int64_t before, int limit, int64_t most_jobs = kMostListedJobs);
  // Returns the sweep that was created for this request id; nullopt if none.
  absl::StatusOr<std::optional<StoredSweepRequest>> FindSweepRequest(absl::string_view request_id);
  // Return all records, sorted by name.
  absl::StatusOr<std::vector<StoredUsage>> Usages();
  absl::StatusOr<std::vector<StoredDevice>> Devices();
  absl::StatusOr<std::vector<StoredToken>> Tokens();
  // Returns all registered data sets, oldest first.
  absl::StatusOr<std::vector<StoredDataset>> Datasets();
  // Returns the facts that Transaction::PutDataFacts kept under this digest; nullopt if none or removed.
  absl::StatusOr<std::optional<std::string>> FindDataFacts(absl::string_view digest);

 private:
  Store(std::unique_ptr<GroupWriter> writer, std::unique_ptr<ReaderPool> readers);

  const std::unique_ptr<GroupWriter> writer_;
  const std::unique_ptr<ReaderPool> readers_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_STORE_H_
