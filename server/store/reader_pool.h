#ifndef TANDEM_SERVER_STORE_READER_POOL_H_
#define TANDEM_SERVER_STORE_READER_POOL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "server/store/connection.h"

namespace tandem {

// A few connections for reading, opened on demand. Thread-safe.
class ReaderPool {
 public:
  // Allows at most `size` reads at once; others wait. `vfs` as in Connection::Open, `on_damage` as in
  // Store::Options.
  ReaderPool(std::string path, int size, std::string vfs, std::function<void(const absl::Status&)> on_damage)
      : path_(std::move(path)), vfs_(std::move(vfs)), on_damage_(std::move(on_damage)), free_slots_(size) {}

  // Runs `body` in a read transaction, so that it sees one snapshot. `body` takes a Connection*, returns a
  // StatusOr, and may throw like SQLiteCpp.
  template <typename Body>
  auto Read(absl::string_view doing, Body&& body) -> decltype(body(nullptr)) {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Take());
    auto result = [&]() -> decltype(body(nullptr)) {
      TANDEM_RETURN_IF_ERROR(connection->Execute("BEGIN"));
      return WithoutExceptions(doing, [&] { return body(connection.get()); });
    }();
    if (connection->InTransaction()) connection->Execute("ROLLBACK").IgnoreError();
    Return(std::move(connection));
    if (on_damage_ != nullptr && IsDamage(result.status())) on_damage_(result.status());
    return result;
  }

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Take();
  // Null: returns only the slot.
  void Return(std::unique_ptr<Connection> connection);

  const std::string path_;
  const std::string vfs_;
  const std::function<void(const absl::Status&)> on_damage_;
  Mutex mutex_;
  int free_slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_READER_POOL_H_
