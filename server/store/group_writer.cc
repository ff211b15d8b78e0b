#include "server/store/group_writer.h"

#include <utility>

#include "engine/base/clock.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// Bounds the time that the first write of a group waits for the last.
constexpr size_t kLargestGroup = 256;

}  // namespace

GroupWriter::GroupWriter(std::unique_ptr<Connection> connection, std::unique_ptr<ReservedRoom> room,
                         Watch watch)
    : connection_(std::move(connection)),
      room_(std::move(room)),
      watch_(std::move(watch)),
      thread_([this] { Run(); }) {}

GroupWriter::~GroupWriter() { Close(); }

void GroupWriter::Write(Body body, Done done) {
  {
    MutexLock lock(&mutex_);
    if (!closing_) {
      queue_.push_back({std::move(body), std::move(done), absl::OkStatus()});
      return;
    }
  }
  done(absl::UnavailableError("the store is closed: the daemon is shutting down"));
}

void GroupWriter::SetCommitObserver(CommitObserver observer) {
  auto shared = std::make_shared<const CommitObserver>(std::move(observer));
  MutexLock lock(&mutex_);
  observer_ = std::move(shared);
}

void GroupWriter::Close() {
  {
    MutexLock lock(&mutex_);
    closing_ = true;
  }
  MutexLock lock(&close_mutex_);
  if (thread_.joinable()) thread_.join();
}

void GroupWriter::Run() {
  while (true) {
    std::vector<Request> group;
    std::shared_ptr<const CommitObserver> observer;
    {
      MutexLock lock(&mutex_);
      const auto has_work = [this]()
                                ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); };
      mutex_.Await(absl::Condition(&has_work));
      if (queue_.empty()) break;
      while (!queue_.empty() && group.size() < kLargestGroup) {
        group.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      observer = observer_;
    }
    const absl::Duration begin = Clock::Real()->Elapsed();
    const absl::Status status = RunGroup(&group);
    was_full_ = absl::IsResourceExhausted(status);
    if (room_ != nullptr && status.ok()) room_->Refill(Clock::Real()->Elapsed());
    if (observer != nullptr && *observer != nullptr) {
      (*observer)(Clock::Real()->Elapsed() - begin, static_cast<int>(group.size()), status);
    }
    for (Request& request : group) {
      request.body = nullptr;
      if (watch_.on_damage != nullptr && IsDamage(request.status)) watch_.on_damage(request.status);
      request.done(request.status);
    }
  }
  // If the file was removed, its content ends with the connection. Save it now.
  CheckPlace(/*at_once=*/true).IgnoreError();
}

absl::Status GroupWriter::RunGroup(std::vector<Request>* group) {
  const absl::Status status = [&]() -> absl::Status {
    TANDEM_RETURN_IF_ERROR(CheckPlace());
    TANDEM_RETURN_IF_ERROR(connection_->ExecutePrepared("BEGIN IMMEDIATE"));
    TANDEM_RETURN_IF_ERROR(RunBodies(group));
    TANDEM_RETURN_IF_ERROR(connection_->ExecutePrepared("COMMIT"));
    // If the file was removed during the commit, report a failure.
    return CheckPlace();
  }();
  if (status.ok()) return status;
  if (connection_->InTransaction()) connection_->Execute("ROLLBACK").IgnoreError();
  for (Request& request : *group) {
    if (request.status.ok()) request.status = status;
  }
  return status;
}

absl::Status GroupWriter::CheckPlace(bool at_once) {
  if (watch_.check_place == nullptr) return absl::OkStatus();
  absl::Status place = watch_.check_place();
  if (place.ok() || saved_after_loss_ || watch_.on_lost == nullptr) return place;
  const absl::Duration begin = Clock::Real()->Elapsed();
  if (!at_once && begin < next_save_) return place;
  saved_after_loss_ = watch_.on_lost(place, connection_.get());
  const absl::Duration end = Clock::Real()->Elapsed();
  next_save_ = end + 10 * (end - begin);
  return place;
}

absl::Status GroupWriter::RunBodies(std::vector<Request>* group) {
  Transaction transaction(connection_.get());
  bool frees_room = false;
  for (Request& request : *group) {
    TANDEM_RETURN_IF_ERROR(connection_->ExecutePrepared("SAVEPOINT body"));
    connection_->TakeWhetherItFreesRoom();
    request.status = request.body(transaction);
    if (!connection_->InTransaction()) return request.status;
    if (!request.status.ok()) TANDEM_RETURN_IF_ERROR(connection_->Execute("ROLLBACK TO body"));
    TANDEM_RETURN_IF_ERROR(connection_->ExecutePrepared("RELEASE body"));
    frees_room |= connection_->TakeWhetherItFreesRoom() && request.status.ok();
  }
  // Give up room before the commit, because a failed commit is not retried.
  if (frees_room && room_ != nullptr) room_->GiveUpIfFull(was_full_);
  return absl::OkStatus();
}

}  // namespace tandem
