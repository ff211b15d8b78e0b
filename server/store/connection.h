#ifndef TANDEM_SERVER_STORE_CONNECTION_H_
#define TANDEM_SERVER_STORE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "SQLiteCpp/SQLiteCpp.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Returns the database's error as a status: RESOURCE_EXHAUSTED, DATA_LOSS, UNAVAILABLE (busy), ALREADY_EXISTS
// (a unique value is taken), PERMISSION_DENIED or INTERNAL. The message names the operation `doing`.
absl::Status StatusOfDatabase(absl::string_view doing, const SQLite::Exception& error);

// Returns true if a status means that the database is damaged, not only a stored message.
bool IsDamage(const absl::Status& status);

// Runs `body`, and returns its Status or StatusOr. Turns SQLiteCpp's exceptions into a status.
template <typename Body>
auto WithoutExceptions(absl::string_view doing, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const SQLite::Exception& error) {
    return StatusOfDatabase(doing, error);
  }
}

// A connection to the database, with prepared statements. Only one thread may use it at a time.
class Connection {
 public:
  // kMake: like kReadWrite, and creates a missing file.
  enum class Access { kReadOnly, kReadWrite, kMake };

  // Opens the file with write-ahead log, full sync and foreign keys. `vfs` is the name of SQLite's file
  // system; empty: the default.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Access access,
                                                          const std::string& vfs = "");

  // Runs statements and ignores their rows.
  absl::Status Execute(const std::string& sql);
  // Like Execute, for a single statement without rows. Parses the statement only at its first use. `sql` must
  // outlive the connection. No Query may be using the same statement.
  absl::Status ExecutePrepared(absl::string_view sql);
  // Returns the first column of the first row. NOT_FOUND: no row.
  absl::StatusOr<int64_t> QueryInt(const std::string& sql);

  // Prepares a statement for one use. The text need not outlive the call. Throws like SQLiteCpp.
  std::unique_ptr<SQLite::Statement> Prepare(const std::string& sql) {
    return std::make_unique<SQLite::Statement>(database_, sql);
  }

  // Returns the database's handle, for an Interruption.
  sqlite3* handle() const { return database_.getHandle(); }

  // Notes that the current transaction frees disk space when committed. TakeWhetherItFreesRoom returns and
  // clears this note.
  void NoteThatItFreesRoom() { frees_room_ = true; }
  bool TakeWhetherItFreesRoom() { return std::exchange(frees_room_, false); }

  // Returns true if a transaction is open. After some errors the database ends a transaction itself.
  bool InTransaction();

  const std::string& path() const { return path_; }
  // Returns the folder of the jobs' folders: "jobs", beside the database.
  const std::string& jobs_folder() const { return jobs_folder_; }

 private:
  friend class Query;

  Connection(const std::string& path, int flags, const std::string& vfs);
  SQLite::Statement* Prepared(absl::string_view sql);

  const std::string path_;
  const std::string jobs_folder_;
  SQLite::Database database_;
  bool frees_room_ = false;
  // Keyed by the statement's text, a literal.
  absl::flat_hash_map<absl::string_view, std::unique_ptr<SQLite::Statement>> prepared_;
};

// One use of a prepared statement. Throws like SQLiteCpp, so use it only inside WithoutExceptions.
class Query {
 public:
  // `sql` must outlive the connection. No other Query may be using the same statement.
  Query(Connection* connection, absl::string_view sql) : Query(connection->Prepared(sql)) {}
  explicit Query(SQLite::Statement* statement) : statement_(statement) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Binds the next parameter. Viewed text must outlive the query.
  Query& Int(int64_t value);
  Query& Double(double value);
  Query& Text(absl::string_view value);
  Query& Blob(absl::string_view value);
  Query& Null();
  // Binds NULL if the text is empty.
  Query& TextOrNull(absl::string_view value) { return value.empty() ? Null() : Text(value); }
  // Binds a request's id and bytes, or NULL for both if the id is empty.
  Query& Request(absl::string_view id, absl::string_view bytes) {
    return id.empty() ? Null().Null() : Text(id).Blob(bytes);
  }

  // Moves to the next row. Returns false after the last row.
  bool Next() { return statement_->executeStep(); }
  // Runs a statement without rows. Returns the number of changed rows.
  int Run() { return statement_->exec(); }

  // Return the row's columns, counted from 0.
  int64_t GetInt(int column) { return statement_->getColumn(column).getInt64(); }
  double GetDouble(int column) { return statement_->getColumn(column).getDouble(); }
  bool IsNull(int column) { return statement_->getColumn(column).isNull(); }
  // Valid until the next row.
  absl::string_view GetBlob(int column);

 private:
  SQLite::Statement* const statement_;
  int bound_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_CONNECTION_H_
