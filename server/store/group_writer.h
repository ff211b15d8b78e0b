#ifndef TANDEM_SERVER_STORE_GROUP_WRITER_H_
#define TANDEM_SERVER_STORE_GROUP_WRITER_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/store/connection.h"
#include "server/store/reserved_room.h"
#include "server/store/transaction.h"

namespace tandem {

// The store's writer thread: see Store::Write for the contract. Thread-safe.
//
// While one group is committed the next one gathers, so that the number of syncs follows the disk and not the
// load.
class GroupWriter {
 public:
  using Body = absl::AnyInvocable<absl::Status(Transaction&)>;
  using Done = absl::AnyInvocable<void(absl::Status)>;
  // See Store::SetCommitObserver.
  using CommitObserver = std::function<void(absl::Duration duration, int writes, const absl::Status& status)>;

  // See Store::Options.
  using OnDamage = std::function<void(const absl::Status& status)>;

  // `room`, of which it gives up what writes need that give room back, and `on_damage` may be null.
  GroupWriter(std::unique_ptr<Connection> connection, std::unique_ptr<ReservedRoom> room, OnDamage on_damage);
  // Close().
  ~GroupWriter();

  void Write(Body body, Done done);
  void SetCommitObserver(CommitObserver observer);
  void Close();

 private:
  struct Request {
    Body body;
    Done done;
    absl::Status status;
  };

  void Run();
  // Runs and commits the bodies and sets each one's status. An error: of the commit.
  absl::Status RunGroup(std::vector<Request>* group);
  // Runs the bodies, each in a savepoint. An error: the database ended the transaction, and nothing of it
  // stays.
  absl::Status RunBodies(std::vector<Request>* group);

  // The writer thread's alone.
  const std::unique_ptr<Connection> connection_;
  const std::unique_ptr<ReservedRoom> room_;
  const OnDamage on_damage_;
  // The last commit found no room.
  bool was_full_ = false;

  Mutex mutex_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const CommitObserver> observer_ ABSL_GUARDED_BY(mutex_);

  Mutex close_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(close_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_GROUP_WRITER_H_
