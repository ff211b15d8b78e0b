#include "server/store/reader_pool.h"

namespace tandem {

absl::StatusOr<std::unique_ptr<Connection>> ReaderPool::Take() {
  {
    MutexLock lock(&mutex_);
    const auto has_slot = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return free_slots_ > 0; };
    mutex_.Await(absl::Condition(&has_slot));
    --free_slots_;
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      Connection::Open(path_, Connection::Access::kReadOnly, vfs_);
  if (!connection.ok()) Return(nullptr);
  return connection;
}

void ReaderPool::Return(std::unique_ptr<Connection> connection) {
  MutexLock lock(&mutex_);
  ++free_slots_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
}

}  // namespace tandem
