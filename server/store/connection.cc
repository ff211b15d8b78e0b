#include "server/store/connection.h"

#include <sqlite3.h>

#include <filesystem>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr char kDamage[] = "tandem/damaged-database";

}  // namespace

absl::Status StatusOfDatabase(absl::string_view doing, const SQLite::Exception& error) {
  const std::string message = absl::StrCat("cannot ", doing, ": ", error.what());
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; make room on the disk of the state folder, or delete jobs"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: {
      absl::Status status = absl::DataLossError(message);
      status.SetPayload(kDamage, absl::Cord());
      return status;
    }
    case SQLITE_INTERRUPT:
      return absl::CancelledError(message);
    case SQLITE_BUSY:
      return absl::UnavailableError(message);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return absl::PermissionDeniedError(message);
    case SQLITE_CONSTRAINT:
      if (error.getExtendedErrorCode() == SQLITE_CONSTRAINT_UNIQUE ||
          error.getExtendedErrorCode() == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return absl::AlreadyExistsError(message);
      }
      return absl::InternalError(message);
    case SQLITE_IOERR:
      // Opening a database also needs space for the log's index.
      if (error.getExtendedErrorCode() == SQLITE_IOERR_SHMSIZE) {
        return absl::ResourceExhaustedError(
            absl::StrCat(message, "; make room on the disk of the state folder, or delete jobs"));
      }
      return absl::InternalError(absl::StrCat(message,
                                              "; the disk of the state folder failed to read or write: check "
                                              "whether it is read-only or damaged"));
    default:
      return absl::InternalError(message);
  }
}

bool IsDamage(const absl::Status& status) { return status.GetPayload(kDamage).has_value(); }

Connection::Connection(const std::string& path, int flags, const std::string& vfs)
    : path_(path),
      jobs_folder_((std::filesystem::path(path).parent_path() / "jobs").string()),
      database_(path, flags, kBusyTimeoutMs, vfs) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Access access,
                                                             const std::string& vfs) {
  return WithoutExceptions(absl::StrCat("open ", path), [&]() -> absl::StatusOr<std::unique_ptr<Connection>> {
    const int make = access == Access::kMake ? SQLite::OPEN_CREATE : 0;
    std::unique_ptr<Connection> connection(
        new Connection(path, SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX | make, vfs));
    SQLite::Database& database = connection->database_;
    const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
    if (mode != "wal") {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot use ", path, ": its file system supports no write-ahead log (journal mode is \"", mode,
          "\"); use a state folder on a local disk"));
    }
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA foreign_keys = ON");
    database.exec("PRAGMA trusted_schema = OFF");
    if (access == Access::kReadOnly) database.exec("PRAGMA query_only = ON");
    return connection;
  });
}

absl::Status Connection::Execute(const std::string& sql) {
  return WithoutExceptions("change the database", [&]() -> absl::Status {
    database_.exec(sql);
    return absl::OkStatus();
  });
}

absl::Status Connection::ExecutePrepared(absl::string_view sql) {
  return WithoutExceptions("change the database", [&]() -> absl::Status {
    Query(this, sql).Run();
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> Connection::QueryInt(const std::string& sql) {
  return WithoutExceptions("query the database", [&]() -> absl::StatusOr<int64_t> {
    SQLite::Statement statement(database_, sql);
    if (!statement.executeStep()) return absl::NotFoundError("the query returned no row");
    return statement.getColumn(0).getInt64();
  });
}

bool Connection::InTransaction() { return sqlite3_get_autocommit(database_.getHandle()) == 0; }

SQLite::Statement* Connection::Prepared(absl::string_view sql) {
  std::unique_ptr<SQLite::Statement>& statement = prepared_[sql];
  if (statement == nullptr) {
    statement = std::make_unique<SQLite::Statement>(database_, std::string(sql));
  }
  return statement.get();
}

Query::~Query() {
  statement_->tryReset();
  // Never throws: the statement is prepared, so clearing its parameters succeeds.
  statement_->clearBindings();
}

Query& Query::Int(int64_t value) {
  statement_->bind(++bound_, value);
  return *this;
}

Query& Query::Double(double value) {
  statement_->bind(++bound_, value);
  return *this;
}

Query& Query::Text(absl::string_view value) {
  statement_->bind(++bound_, std::string(value));
  return *this;
}

Query& Query::Blob(absl::string_view value) {
  // A null pointer would mean NULL, not an empty blob.
  statement_->bindNoCopy(++bound_, value.empty() ? "" : value.data(), static_cast<int>(value.size()));
  return *this;
}

Query& Query::Null() {
  statement_->bind(++bound_);
  return *this;
}

absl::string_view Query::GetBlob(int column) {
  const SQLite::Column value = statement_->getColumn(column);
  const void* bytes = value.getBlob();
  if (bytes == nullptr) return "";
  return absl::string_view(static_cast<const char*>(bytes), static_cast<size_t>(value.getBytes()));
}

}  // namespace tandem
