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

  // See Store::Options, whose on_damage and on_lost these are; either may be null.
  struct Watch {
    std::function<void(const absl::Status& status)> on_damage;
    std::function<bool(const absl::Status& status, Connection* connection)> on_lost;
    // Whether the database's file is where it was; null: that is not asked. Cheap: once before and once after
    // each commit.
    std::function<absl::Status()> check_place;
  };

  // `room`, of which it gives up what writes need that give room back, may be null.
  GroupWriter(std::unique_ptr<Connection> connection, std::unique_ptr<ReservedRoom> room, Watch watch);
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
  // Runs and commits the bodies and sets each one's status. An error: of the commit, or the file is not where
  // it was.
  absl::Status RunGroup(std::vector<Request>* group);
  // The place's status, told to whom it concerns. What could not be saved is tried again after ten times as
  // long as that took, or `at_once`.
  absl::Status CheckPlace(bool at_once = false);
  // Runs the bodies, each in a savepoint. An error: the database ended the transaction, and nothing of it
  // stays.
  absl::Status RunBodies(std::vector<Request>* group);

  // The writer thread's alone.
  const std::unique_ptr<Connection> connection_;
  const std::unique_ptr<ReservedRoom> room_;
  const Watch watch_;
  bool saved_after_loss_ = false;
  absl::Duration next_save_ = -absl::InfiniteDuration();
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
