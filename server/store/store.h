#ifndef TANDEM_SERVER_STORE_STORE_H_
#define TANDEM_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
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
// One thread writes; what waits for it is committed together with one sync. Readers have connections of their
// own, see only what is committed and never wait for the writer.
class Store {
 public:
  struct Options {
    // The name of the file system that SQLite takes (see EnvVfs); empty: its own.
    std::string vfs = "";
    // Told when the database turns out to be damaged while it is in use, on any thread, and maybe often.
    std::function<void(const absl::Status&)> on_damage = nullptr;
    // Told when the database's file was removed, or another took its place, while it is in use: nothing is
    // written from then on, all writes get UNAVAILABLE. `connection` still has all that was, with no
    // transaction open. Returns whether that was saved; until then it is told again with later writes, of
    // which Probe is one. On the writer thread.
    std::function<bool(const absl::Status& status, Connection* connection)> on_lost = nullptr;
    // After so many pages the write-ahead log is carried over into the database.
    int checkpoint_pages = 1000;
    // The steps of the schema. Tests give others.
    absl::Span<const Migration> migrations = Migrations();
  };

  // Opens the database file, making it or bringing its schema to the newest version, in one transaction.
  // FAILED_PRECONDITION: it was written by a newer version, or another process holds it. DATA_LOSS: it is
  // corrupt.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& database_path,
                                                     const Options& options);
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& database_path) {
    return Open(database_path, Options());
  }

  // Close().
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  using Body = absl::AnyInvocable<absl::Status(Transaction&)>;
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // Has `body` run on the writer thread in a transaction of its own (a savepoint within the group's): where
  // it returns an error, nothing of it stays. Then `done` is called, once, on the writer thread: with OK when
  // the changes are durable, with the body's error, or with the commit's (nothing of the body stays, and it
  // is not tried again). Bodies run, and `done`s are called, in the order of the calls to Write; a `done`
  // sees its changes in reads. Both must not block, and may call Write. After Close, `done` gets UNAVAILABLE
  // on the caller's thread.
  void Write(Body body, Done done);

  // Has it heard how long each commit of the writer thread took, how many writes were in it, and whether it
  // succeeded; on that thread, so it must not block. Replaces the one before; null: none.
  void SetCommitObserver(
      std::function<void(absl::Duration duration, int writes, const absl::Status&)> observer);

  // Writes a page with what it has already, and syncs it, so that `done` says whether the disk takes writes.
  // As Write.
  void Probe(Done done);

  // Has the events of deleted jobs removed, in pieces, between which other writes go on. What is left when
  // the store is closed goes when it is opened next.
  void RemoveDeleted();

  // Finishes all writes asked for so far, and refuses later ones. Idempotent. Not from a body or a `done`.
  void Close();

  // NOT_FOUND: no such job. `waiting` is never set.
  absl::StatusOr<StoredJob> GetJob(absl::string_view id);
  // INVALID_ARGUMENT: the page token is not of this query.
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query);
  // Calls `visit` with each job that has not ended, oldest first, one at a time, as all their specs may be
  // more than there is memory. All are of one snapshot; an error may come after some of them. `visit` must
  // not call the store.
  absl::Status VisitNonTerminalJobs(absl::FunctionRef<void(StoredJob)> visit);
  // These jobs, without their specs.
  absl::StatusOr<std::vector<StoredJob>> NonTerminalJobs();
  // How many jobs there are in each state that some are in.
  absl::StatusOr<std::map<v1::JobState, int64_t>> CountJobs();
  // Whether there was a job of this id and is none any more.
  absl::StatusOr<bool> WasDeleted(absl::string_view id);
  // The job made for this request id, where there is one.
  absl::StatusOr<std::optional<StoredRequest>> FindRequest(absl::string_view request_id);
  // At most `limit` events after a sequence number. NOT_FOUND: no such job.
  absl::StatusOr<EventPage> ReadEvents(absl::string_view id, int64_t after_sequence, int limit);
  // Calls `visit` with at most `limit` events after a sequence number, in order, until it returns false. The
  // event is valid during the call, and `visit` must not call the store. Returns the job's newest sequence
  // number. NOT_FOUND: no such job. Takes the memory of one event.
  absl::StatusOr<int64_t> VisitEvents(absl::string_view id, int64_t after_sequence, int limit,
                                      absl::FunctionRef<bool(const v1::JobEvent&)> visit);
  // At most `limit` changes after a cursor.
  absl::StatusOr<ChangePage> ReadChanges(int64_t after_cursor, int limit);
  // Those of a job that are kept, newest first. NOT_FOUND: no such job.
  absl::StatusOr<std::vector<v1::Checkpoint>> Checkpoints(absl::string_view id);
  // NOT_FOUND: no such sweep.
  absl::StatusOr<StoredSweep> GetSweep(absl::string_view id);
  // At most `limit` sweeps of numbers below `before` (0: all), newest first; fewer where they have more than
  // `most_jobs` jobs together, but at least one.
  absl::StatusOr<SweepPage> ListSweeps(int64_t before, int limit, int64_t most_jobs = kMostListedJobs);
  // The sweep made for this request id, where there is one.
  absl::StatusOr<std::optional<StoredSweepRequest>> FindSweepRequest(absl::string_view request_id);
  // All that is kept, by name.
  absl::StatusOr<std::vector<StoredUsage>> Usages();
  absl::StatusOr<std::vector<StoredDevice>> Devices();
  absl::StatusOr<std::vector<StoredToken>> Tokens();
  // All registered data sets, oldest first.
  absl::StatusOr<std::vector<StoredDataset>> Datasets();
  // What was kept with this digest by Transaction::PutDataFacts; none if nothing was, or it was removed.
  absl::StatusOr<std::optional<std::string>> FindDataFacts(absl::string_view digest);

 private:
  Store(std::unique_ptr<GroupWriter> writer, std::unique_ptr<ReaderPool> readers);

  const std::unique_ptr<GroupWriter> writer_;
  const std::unique_ptr<ReaderPool> readers_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_STORE_H_
