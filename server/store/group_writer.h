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

// The store's writer thread. Store::Write has the contract. Thread-safe.
//
// While a group commits, the next group gathers. So the number of syncs depends on the disk, not on the load.
class GroupWriter {
 public:
  using Body = absl::AnyInvocable<absl::Status(Transaction&)>;
  using Done = absl::AnyInvocable<void(absl::Status)>;
  // See Store::SetCommitObserver.
  using CommitObserver = std::function<void(absl::Duration duration, int writes, const absl::Status& status)>;

  // The first two are on_damage and on_lost of Store::Options; each may be null.
  struct Watch {
    std::function<void(const absl::Status& status)> on_damage;
    std::function<bool(const absl::Status& status, Connection* connection)> on_lost;
    // Returns OK if the database's file is in its place. Null: not checked. Called before and after each
    // commit, so it must be cheap.
    std::function<absl::Status()> check_place;
  };

  // `room`, which may be null, is given up for writes that free disk space.
  GroupWriter(std::unique_ptr<Connection> connection, std::unique_ptr<ReservedRoom> room, Watch watch);
  // Calls Close.
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
  // Runs and commits the bodies, and sets each request's status. Returns an error if the commit fails or the
  // file is not in its place.
  absl::Status RunGroup(std::vector<Request>* group);
  // Returns the status of the database's file. If the file is lost, calls on_lost to save the content. After
  // a failed save, waits ten times the duration of the save before the next one, unless `at_once`.
  absl::Status CheckPlace(bool at_once = false);
  // Runs the bodies, each in a savepoint. An error means that the database ended the transaction and undid
  // all bodies.
  absl::Status RunBodies(std::vector<Request>* group);

  // Only the writer thread uses the following members.
  const std::unique_ptr<Connection> connection_;
  const std::unique_ptr<ReservedRoom> room_;
  const Watch watch_;
  bool saved_after_loss_ = false;
  absl::Duration next_save_ = -absl::InfiniteDuration();
  // True if the last commit found the disk full.
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
