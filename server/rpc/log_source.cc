#include "server/rpc/log_source.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/rpc/file_reader.h"

namespace tandem {
namespace {

using Callback = ItemSource<v1::ReadLogResponse>::Callback;
using Result = ItemSource<v1::ReadLogResponse>::Result;

// Shared by the source and its wakers. At most one thread at a time is in Serve.
class LogFollower : public std::enable_shared_from_this<LogFollower> {
 public:
  LogFollower(LogRequest request, FairPool* pool, std::string user, FileWatcher* watcher)
      : request_(std::move(request)),
        pool_(pool),
        user_(std::move(user)),
        watcher_(watcher),
        reader_(request_.path),
        offset_(request_.offset) {
    if (request_.until_end == nullptr) end_ = absl::OkStatus();
  }
  ~LogFollower() {
    if (watch_.has_value()) watcher_->Remove(*watch_);
  }

  void Start() {
    if (request_.until_end != nullptr) AwaitEnd();
  }

  void Next(Callback callback) {
    {
      MutexLock lock(&mutex_);
      callback_ = std::move(callback);
    }
    Wake();
  }

  void Cancel() {
    // The source ends by its subscription's end or by this, whichever comes first.
    SetEnd(absl::CancelledError("the client cancelled the call"));
  }

 private:
  void AwaitEnd() {
    request_.until_end->Next([weak = weak_from_this()](EventSubscription::Result event) {
      const std::shared_ptr<LogFollower> self = weak.lock();
      if (self == nullptr) return;
      if (!event.ok() || !event->has_value()) {
        self->SetEnd(event.status());
        return;
      }
      // Any event may mean that the folder now exists.
      self->Wake();
      self->AwaitEnd();
    });
  }

  void SetEnd(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (!end_.has_value() || end_->ok()) end_ = status;
    }
    Wake();
  }

  void Wake() {
    Callback callback;
    {
      MutexLock lock(&mutex_);
      woken_ = true;
      if (callback_ == nullptr) return;
      callback = std::exchange(callback_, nullptr);
    }
    // The task owns the callback, which keeps this object: a stopping pool destroys both.
    pool_->Post(user_, [self = shared_from_this(), callback = std::move(callback)]() mutable {
      self->Serve(std::move(callback));
    });
  }

  void Serve(Callback callback) {
    for (;;) {
      std::optional<absl::Status> end;
      {
        MutexLock lock(&mutex_);
        if (!woken_) {
          callback_ = std::move(callback);
          return;
        }
        woken_ = false;
        end = end_;
      }
      // Read after `end`, so that everything from before the job's end is still returned.
      std::optional<Result> result = TryRead(end);
      if (result.has_value()) return callback(*std::move(result));
    }
  }

  // Returns nullopt if nothing is new; a change will wake the follower.
  std::optional<Result> TryRead(const std::optional<absl::Status>& end) {
    if (end.has_value() && !end->ok()) return Result(*end);
    if (!end.has_value() && !watch_.has_value()) {
      const std::filesystem::path path(request_.path);
      const absl::StatusOr<int64_t> watch =
          watcher_->Add(path.parent_path().string(), path.filename().string(), [weak = weak_from_this()] {
            if (const std::shared_ptr<LogFollower> self = weak.lock()) self->Wake();
          });
      if (watch.ok()) {
        watch_ = *watch;
      } else if (!absl::IsNotFound(watch.status())) {
        return Result(watch.status());
      }
    }
    if (!checked_offset_) {
      const absl::StatusOr<int64_t> size = reader_.Size();
      if (!size.ok()) return Result(size.status());
      if (offset_ > *size) {
        return Result(absl::OutOfRangeError(
            absl::StrCat("offset: is ", offset_, "; it must be at most ", *size, ", the size of the log")));
      }
      checked_offset_ = true;
    }
    absl::StatusOr<std::string> piece = reader_.Read(offset_);
    if (!piece.ok()) return Result(piece.status());
    if (!piece->empty()) {
      v1::ReadLogResponse response;
      response.set_offset(offset_);
      offset_ += static_cast<int64_t>(piece->size());
      response.set_data(*std::move(piece));
      return Result(std::move(response));
    }
    if (end.has_value()) return Result(std::nullopt);
    return std::nullopt;
  }

  const LogRequest request_;
  FairPool* const pool_;
  const std::string user_;
  FileWatcher* const watcher_;
  // Only the thread in Serve uses the following members.
  FileReader reader_;
  int64_t offset_;
  bool checked_offset_ = false;
  std::optional<int64_t> watch_;

  Mutex mutex_;
  // Null while a thread is in Serve, or no Next is outstanding.
  Callback callback_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  // If set, nothing more will be written, or (an error) nothing more is wanted.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

class LogSource : public ItemSource<v1::ReadLogResponse> {
 public:
  explicit LogSource(std::shared_ptr<LogFollower> follower) : follower_(std::move(follower)) {}
  void Next(Callback callback) override { follower_->Next(std::move(callback)); }
  void Cancel() override { follower_->Cancel(); }

 private:
  const std::shared_ptr<LogFollower> follower_;
};

}  // namespace

std::unique_ptr<ItemSource<v1::ReadLogResponse>> MakeLogSource(LogRequest request, FairPool* pool,
                                                               std::string user, FileWatcher* watcher) {
  auto follower = std::make_shared<LogFollower>(std::move(request), pool, std::move(user), watcher);
  follower->Start();
  return std::make_unique<LogSource>(std::move(follower));
}

}  // namespace tandem
