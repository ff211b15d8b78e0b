#ifndef TANDEM_SERVER_STORE_CONNECTION_H_
#define TANDEM_SERVER_STORE_CONNECTION_H_

#include <atomic>
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

// The database's error as a status: RESOURCE_EXHAUSTED, DATA_LOSS, UNAVAILABLE (busy), ALREADY_EXISTS (a
// unique value is taken), PERMISSION_DENIED or INTERNAL; the message says what was being done.
absl::Status StatusOfDatabase(absl::string_view doing, const SQLite::Exception& error);

// Whether a status says that the database is damaged, and not only a message in it.
bool IsDamage(const absl::Status& status);

// Runs `body`, which returns a Status or a StatusOr and may throw as SQLiteCpp does.
template <typename Body>
auto WithoutExceptions(absl::string_view doing, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const SQLite::Exception& error) {
    return StatusOfDatabase(doing, error);
  }
}

// A connection to the database and its prepared statements. For one thread at a time.
class Connection {
 public:
  // kMake: to read and write, and the file is made where it is missing.
  enum class Access { kReadOnly, kReadWrite, kMake };

  // Opens the file with write-ahead log, full sync and foreign keys. `vfs` is the name of the file system
  // that SQLite takes; empty: its own.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Access access,
                                                          const std::string& vfs = "");

  // Runs statements whose results do not matter.
  absl::Status Execute(const std::string& sql);
  // The first column of the first row. NOT_FOUND: no row.
  absl::StatusOr<int64_t> QueryInt(const std::string& sql);

  // A statement for one use; the text need not live on. Throws as SQLiteCpp does.
  std::unique_ptr<SQLite::Statement> Prepare(const std::string& sql) {
    return std::make_unique<SQLite::Statement>(database_, sql);
  }

  // Has what runs fail with CANCELLED soon after `stop`, which outlives this, is true.
  void StopWhen(const std::atomic<bool>* stop);

  // Whether what was written since it was last asked gives room back when it is committed.
  void NoteThatItFreesRoom() { frees_room_ = true; }
  bool TakeWhetherItFreesRoom() { return std::exchange(frees_room_, false); }

  // Whether a transaction is open. The database ends one by itself after some errors.
  bool InTransaction();

  const std::string& path() const { return path_; }
  // Where the folders of its jobs are: "jobs", beside the database.
  const std::string& jobs_folder() const { return jobs_folder_; }

 private:
  friend class Query;

  Connection(const std::string& path, int flags, const std::string& vfs);
  SQLite::Statement* Prepared(absl::string_view sql);

  const std::string path_;
  const std::string jobs_folder_;
  SQLite::Database database_;
  bool frees_room_ = false;
  // By their text, which is a literal.
  absl::flat_hash_map<absl::string_view, std::unique_ptr<SQLite::Statement>> prepared_;
};

// One use of a prepared statement. Throws as SQLiteCpp does: only within WithoutExceptions.
class Query {
 public:
  // `sql` must live as long as the connection, and must not be in use.
  Query(Connection* connection, absl::string_view sql) : Query(connection->Prepared(sql)) {}
  explicit Query(SQLite::Statement* statement) : statement_(statement) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Gives the next parameter its value. What is viewed must live as long as this.
  Query& Int(int64_t value);
  Query& Double(double value);
  Query& Text(absl::string_view value);
  Query& Blob(absl::string_view value);
  Query& Null();

  // Goes to the next row; returns false after the last.
  bool Next() { return statement_->executeStep(); }
  // Runs a statement without rows; returns how many rows it changed.
  int Run() { return statement_->exec(); }

  // Columns of the row, from 0.
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
