#include "server/store/store.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"
#include "server/store/group_writer.h"
#include "server/store/job_list.h"
#include "server/store/job_rows.h"
#include "server/store/reader_pool.h"
#include "server/store/reserved_room.h"

namespace tandem {
namespace {

// More than the reading threads, so that no read waits for another user's.
constexpr int kReaders = 24;
// Removing so many events takes some milliseconds.
constexpr int kPieceOfDeleted = 1000;

#define TANDEM_NON_TERMINAL_JOBS \
  " FROM jobs WHERE state NOT IN (?, ?, ?) AND NOT " TANDEM_IS_DELETED " ORDER BY number"

// Visits the jobs of a query with the condition above.
absl::Status VisitJobs(Connection* connection, Query* query, bool with_spec,
                       absl::FunctionRef<void(StoredJob)> visit) {
  query->Int(v1::JOB_STATE_SUCCEEDED).Int(v1::JOB_STATE_FAILED).Int(v1::JOB_STATE_CANCELLED);
  while (query->Next()) {
    TANDEM_ASSIGN_OR_RETURN(StoredJob job, ReadJobRow(*connection, query, with_spec));
    visit(std::move(job));
  }
  return absl::OkStatus();
}

// Remembers which file a name leads to, to notice that the file was removed or replaced. Later writes to a
// removed file are lost with the process. Immutable, so thread-safe.
class DatabaseFile {
 public:
  // Returns the file that `path` leads to now. NOT_FOUND and other errors are the system's.
  static absl::StatusOr<DatabaseFile> At(const std::string& path);

  // UNAVAILABLE: the file was removed or replaced. OK if the system cannot tell.
  absl::Status Check() const;

 private:
  DatabaseFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  dev_t device_;
  ino_t inode_;
};

absl::StatusOr<DatabaseFile> DatabaseFile::At(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  return DatabaseFile(path, info.st_dev, info.st_ino);
}

absl::Status DatabaseFile::Check() const {
  struct stat info = {};
  const bool is_there = stat(path_.c_str(), &info) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return absl::OkStatus();
  if (is_there && info.st_dev == device_ && info.st_ino == inode_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot use the database ", path_, ": it was ",
                                             is_there ? "replaced by another file" : "removed",
                                             " while the daemon used it"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& database_path, const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                          Connection::Open(database_path, Connection::Access::kMake, options.vfs));
  TANDEM_RETURN_IF_ERROR(
      connection->Execute(absl::StrCat("PRAGMA wal_autocheckpoint = ", options.checkpoint_pages)));
  TANDEM_RETURN_IF_ERROR(Migrate(connection.get(), options.migrations));
  GroupWriter::Watch watch;
  watch.on_damage = options.on_damage;
  watch.on_lost = options.on_lost;
  std::unique_ptr<ReservedRoom> room;
  // With another file system, the path does not name a real file.
  if (options.vfs.empty()) {
    TANDEM_ASSIGN_OR_RETURN(const DatabaseFile file, DatabaseFile::At(database_path));
    watch.check_place = [file] { return file.Check(); };
    room = std::make_unique<ReservedRoom>(ReservedRoom::PathBeside(database_path));
  }
  std::unique_ptr<Store> store(
      new Store(std::make_unique<GroupWriter>(std::move(connection), std::move(room), std::move(watch)),
                std::make_unique<ReaderPool>(database_path, kReaders, options.vfs, options.on_damage)));
  store->RemoveDeleted();
  return store;
}

Store::Store(std::unique_ptr<GroupWriter> writer, std::unique_ptr<ReaderPool> readers)
    : writer_(std::move(writer)), readers_(std::move(readers)) {}

Store::~Store() { Close(); }

void Store::Write(Body body, Done done) { writer_->Write(std::move(body), std::move(done)); }

void Store::SetCommitObserver(std::function<void(absl::Duration, int, const absl::Status&)> observer) {
  writer_->SetCommitObserver(std::move(observer));
}

void Store::Probe(Done done) {
  Write([](Transaction& transaction) { return transaction.Touch(); }, std::move(done));
}

void Store::RemoveDeleted() {
  const auto more = std::make_shared<bool>(false);
  Write(
      [more](Transaction& transaction) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(*more, transaction.RemoveDeleted(kPieceOfDeleted));
        return absl::OkStatus();
      },
      [this, more](const absl::Status& status) {
        if (status.ok() && *more) RemoveDeleted();
      });
}

void Store::Close() { writer_->Close(); }

absl::StatusOr<StoredJob> Store::GetJob(absl::string_view id) {
  return readers_->Read("read a job",
                        [&](Connection* connection) { return Transaction(connection).GetJob(id); });
}

absl::StatusOr<std::optional<StoredRequest>> Store::FindRequest(absl::string_view request_id) {
  return readers_->Read("find a request", [&](Connection* connection) {
    return Transaction(connection).FindRequest(request_id);
  });
}

absl::StatusOr<JobPage> Store::ListJobs(const JobQuery& query) {
  return readers_->Read("list jobs", [&](Connection* connection) { return ReadJobList(connection, query); });
}

absl::Status Store::VisitNonTerminalJobs(absl::FunctionRef<void(StoredJob)> visit) {
  const auto visited = readers_->Read("list jobs", [&](Connection* connection) -> absl::StatusOr<bool> {
    Query query(connection, "SELECT " TANDEM_JOB_COLUMNS TANDEM_NON_TERMINAL_JOBS);
    TANDEM_RETURN_IF_ERROR(VisitJobs(connection, &query, /*with_spec=*/true, visit));
    return true;
  });
  return visited.status();
}

absl::StatusOr<std::vector<StoredJob>> Store::NonTerminalJobs() {
  return readers_->Read("list jobs", [&](Connection* connection) -> absl::StatusOr<std::vector<StoredJob>> {
    std::vector<StoredJob> jobs;
    Query query(connection, "SELECT " TANDEM_JOB_COLUMNS_WITHOUT_SPEC TANDEM_NON_TERMINAL_JOBS);
    TANDEM_RETURN_IF_ERROR(VisitJobs(connection, &query, /*with_spec=*/false,
                                     [&jobs](StoredJob job) { jobs.push_back(std::move(job)); }));
    return jobs;
  });
}

absl::StatusOr<std::map<v1::JobState, int64_t>> Store::CountJobs() {
  using Counts = std::map<v1::JobState, int64_t>;
  return readers_->Read("count jobs", [&](Connection* connection) -> absl::StatusOr<Counts> {
    Counts counts;
    Query query(connection,
                "SELECT state, count(*) FROM jobs WHERE NOT " TANDEM_IS_DELETED " GROUP BY state");
    while (query.Next()) counts[static_cast<v1::JobState>(query.GetInt(0))] = query.GetInt(1);
    return counts;
  });
}

absl::StatusOr<bool> Store::WasDeleted(absl::string_view id) {
  return readers_->Read("look for a deleted job", [&](Connection* connection) -> absl::StatusOr<bool> {
    Query query(connection,
                "SELECT EXISTS (SELECT 1 FROM deleted_jobs WHERE id = ?) "
                "AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = ?)");
    return query.Text(id).Text(id).Next() && query.GetInt(0) != 0;
  });
}

absl::StatusOr<EventPage> Store::ReadEvents(absl::string_view id, int64_t after_sequence, int limit,
                                            int64_t most_bytes) {
  return readers_->Read("read events", [&](Connection* connection) -> absl::StatusOr<EventPage> {
    EventPage page;
    Query job(connection, "SELECT number, last_sequence, state FROM jobs WHERE id = ?");
    if (!job.Text(id).Next()) return NoSuchJob(id);
    page.last_sequence = job.GetInt(1);
    page.ended = IsTerminal(static_cast<v1::JobState>(job.GetInt(2)));

    Query events(connection,
                 "SELECT event FROM events WHERE job = ? AND sequence > ? ORDER BY sequence LIMIT ?");
    events.Int(job.GetInt(0)).Int(after_sequence).Int(limit);
    int64_t bytes = 0;
    while (events.Next()) {
      const absl::string_view event = events.GetBlob(0);
      bytes += static_cast<int64_t>(event.size());
      if (bytes > most_bytes && !page.events.empty()) break;
      TANDEM_RETURN_IF_ERROR(ParseStored(event, "event", &page.events.emplace_back()));
    }
    return page;
  });
}

absl::StatusOr<int64_t> Store::VisitEvents(absl::string_view id, int64_t after_sequence, int limit,
                                           absl::FunctionRef<bool(const v1::JobEvent&)> visit) {
  return readers_->Read("read events", [&](Connection* connection) -> absl::StatusOr<int64_t> {
    Query job(connection, "SELECT number, last_sequence FROM jobs WHERE id = ?");
    if (!job.Text(id).Next()) return NoSuchJob(id);
    Query events(connection,
                 "SELECT event FROM events WHERE job = ? AND sequence > ? ORDER BY sequence LIMIT ?");
    events.Int(job.GetInt(0)).Int(after_sequence).Int(limit);
    // Reused: it keeps its memory from event to event.
    v1::JobEvent event;
    while (events.Next()) {
      TANDEM_RETURN_IF_ERROR(ParseStored(events.GetBlob(0), "event", &event));
      if (!visit(event)) break;
    }
    return job.GetInt(1);
  });
}

absl::StatusOr<ChangePage> Store::ReadChanges(int64_t after_cursor, int limit, int64_t most_bytes) {
  return readers_->Read("read changes", [&](Connection* connection) -> absl::StatusOr<ChangePage> {
    ChangePage page;
    Query newest(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'changes'");
    if (newest.Next()) page.newest_cursor = newest.GetInt(0);

    Query changes(
        connection,
        "SELECT c.cursor, e.event FROM changes c JOIN events e ON e.job = c.job AND e.sequence = c.sequence "
        "WHERE c.cursor > ? ORDER BY c.cursor LIMIT ?");
    changes.Int(after_cursor).Int(limit);
    int64_t bytes = 0;
    while (changes.Next()) {
      const absl::string_view event = changes.GetBlob(1);
      bytes += static_cast<int64_t>(event.size());
      if (bytes > most_bytes && !page.changes.empty()) break;
      JobChange& change = page.changes.emplace_back();
      change.cursor = changes.GetInt(0);
      TANDEM_RETURN_IF_ERROR(ParseStored(event, "event", &change.event));
    }
    return page;
  });
}

absl::StatusOr<std::vector<StoredDataset>> Store::Datasets() {
  return readers_->Read(
      "list data sets", [&](Connection* connection) -> absl::StatusOr<std::vector<StoredDataset>> {
        std::vector<StoredDataset> datasets;
        Query query(connection,
                    "SELECT record, coalesce(upload, ''), coalesce(request_id, ''), coalesce(request, x'') "
                    "FROM datasets ORDER BY number");
        while (query.Next()) {
          StoredDataset& dataset = datasets.emplace_back();
          TANDEM_RETURN_IF_ERROR(ParseStored(query.GetBlob(0), "data set", &dataset.dataset));
          dataset.upload = std::string(query.GetBlob(1));
          dataset.request_id = std::string(query.GetBlob(2));
          dataset.request = std::string(query.GetBlob(3));
        }
        return datasets;
      });
}

}  // namespace tandem
