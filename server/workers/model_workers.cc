#include "server/workers/model_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/clock.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "engine/base/retry_delay.h"
#include "engine/base/status_macros.h"
#include "server/workers/model_task_frames.h"
#include "server/workers/worker_launcher.h"
#include "server/workers/worker_process.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using internal::v1::ModelTaskEnd;
using internal::v1::ModelTaskOutput;

// The most outputs that are kept for a slow client. A worker with more waits.
constexpr size_t kMostKept = 8;
// A refused caller may call again after this delay. The end of a running call is unknown.
constexpr absl::Duration kBusyDelay = absl::Seconds(5);
// The part of a dead process's stderr for the daemon's log.
constexpr size_t kLastWords = 2000;

absl::StatusOr<UniqueFd> MemoryFile(const char* name) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  return file;
}

absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "cannot hand a worker its task");
    if (written > 0) bytes.remove_prefix(written);
  }
  if (lseek(fd, 0, SEEK_SET) != 0) return absl::ErrnoToStatus(errno, "cannot hand a worker its task");
  return absl::OkStatus();
}

std::string LastWords(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  std::string text(std::min<size_t>(size < 0 ? 0 : size, kLastWords), '\0');
  const ssize_t count = pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(std::max<ssize_t>(count, 0));
  return text;
}

absl::Status StatusOf(const ModelTaskEnd& end) {
  if (end.code() == 0) return absl::OkStatus();
  if (end.violations().empty()) return absl::Status(static_cast<absl::StatusCode>(end.code()), end.message());
  FieldViolations violations;
  for (const auto& violation : end.violations()) violations.Add(violation.field(), violation.description());
  return violations.ToStatus();
}

}  // namespace

void ModelCall::Next(Callback callback) {
  Result result = std::nullopt;
  {
    MutexLock lock(&mutex_);
    if (!outputs_.empty()) {
      result = std::move(outputs_.front());
      outputs_.pop_front();
    } else if (end_.has_value()) {
      if (!end_->ok()) result = *end_;
    } else {
      callback_ = std::move(callback);
      return;
    }
  }
  callback(std::move(result));
}

void ModelCall::Cancel() {
  End(absl::CancelledError("the client cancelled the call"));
  const uint64_t one = 1;
  // Writing fails only if the eventfd is already readable.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

bool ModelCall::HasRoom() const { return end_.has_value() || outputs_.size() < kMostKept; }

void ModelCall::Deliver(ModelTaskOutput output, absl::Duration deadline) {
  Callback callback;
  {
    MutexLock lock(&mutex_);
    const auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasRoom(); };
    mutex_.AwaitWithTimeout(absl::Condition(&room), deadline - Clock::Real()->Elapsed());
    if (end_.has_value()) return;
    if (callback_ == nullptr) {
      outputs_.push_back(std::move(output));
      return;
    }
    callback = std::exchange(callback_, nullptr);
  }
  callback(std::move(output));
}

void ModelCall::End(const absl::Status& status) {
  Callback callback;
  {
    MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    end_ = status;
    if (absl::IsCancelled(status)) outputs_.clear();
    callback = std::exchange(callback_, nullptr);
  }
  if (callback == nullptr) return;
  if (status.ok()) {
    callback(std::nullopt);
  } else {
    callback(status);
  }
}

bool ModelCall::ended() const {
  MutexLock lock(&mutex_);
  return end_.has_value();
}

ModelWorkers::ModelWorkers(Options options) : options_(std::move(options)) {
  MutexLock lock(&stop_mutex_);
  for (int i = 0; i < options_.most_running; ++i) threads_.emplace_back([this] { RunThread(); });
}

ModelWorkers::~ModelWorkers() { Stop(); }

template <typename Calls>
int64_t ModelWorkers::CountOf(const std::string& user, const Calls& calls) {
  return std::count_if(calls.begin(), calls.end(),
                       [&user](const std::shared_ptr<ModelCall>& call) { return call->user_ == user; });
}

absl::StatusOr<std::shared_ptr<ModelCall>> ModelWorkers::Start(const std::string& user,
                                                               internal::v1::ModelTask task) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return absl::ErrnoToStatus(errno, "cannot make an event");
  std::shared_ptr<ModelCall> call(new ModelCall(user, std::move(task), std::move(wake)));
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the daemon is shutting down");
  const auto gone = [](const std::shared_ptr<ModelCall>& other) { return other->ended(); };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), gone), waiting_.end());
  const int64_t own = CountOf(user, waiting_);
  if (own >= options_.most_waiting_each ||
      (own > 0 && waiting_.size() >= static_cast<size_t>(options_.most_waiting))) {
    return WithRetryDelay(
        WithReason(absl::ResourceExhaustedError(
                       absl::StrCat("cannot take another prediction or evaluation: ", options_.most_running,
                                    " may run and ", options_.most_waiting, " may wait, ",
                                    options_.most_waiting_each, " of them of one user; try again later")),
                   "TOO_MANY_MODEL_CALLS"),
        kBusyDelay);
  }
  waiting_.push_back(call);
  return call;
}

void ModelWorkers::Stop() {
  std::vector<std::shared_ptr<ModelCall>> calls;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    calls.assign(waiting_.begin(), waiting_.end());
    calls.insert(calls.end(), running_.begin(), running_.end());
    waiting_.clear();
  }
  for (const std::shared_ptr<ModelCall>& call : calls) call->Cancel();
  MutexLock lock(&stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::shared_ptr<ModelCall> ModelWorkers::TakeNext() {
  // Choose the first call of the user with the fewest running calls.
  const auto next =
      std::min_element(waiting_.begin(), waiting_.end(),
                       [this](const std::shared_ptr<ModelCall>& a, const std::shared_ptr<ModelCall>& b)
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                             return CountOf(a->user_, running_) < CountOf(b->user_, running_);
                           });
  std::shared_ptr<ModelCall> call = std::move(*next);
  waiting_.erase(next);
  // The user had a turn, so all other users come first now.
  std::stable_partition(waiting_.begin(), waiting_.end(), [&call](const std::shared_ptr<ModelCall>& other) {
    return other->user_ != call->user_;
  });
  return call;
}

void ModelWorkers::RunThread() {
  for (;;) {
    std::shared_ptr<ModelCall> call;
    {
      MutexLock lock(&mutex_);
      const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasWork(); };
      mutex_.Await(absl::Condition(&work));
      if (stopping_) return;
      call = TakeNext();
      running_.push_back(call);
    }
    if (!call->ended()) call->End(Run(*call));
    MutexLock lock(&mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), call));
  }
}

absl::Status ModelWorkers::Run(ModelCall& call) const {
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd task, MemoryFile("model-task"));
  TANDEM_ASSIGN_OR_RETURN(const UniqueFd errors, MemoryFile("model-task-errors"));
  TANDEM_RETURN_IF_ERROR(WriteAll(task.get(), call.task_.SerializeAsString()));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const UniqueFd outputs(ends[0]);
  UniqueFd worker_end(ends[1]);

  ProcessGroup::Command command;
  command.program = options_.worker_program;
  command.arguments = {"--model-task", call.task_.has_data() ? "a data set" : call.task_.model_path()};
  AddSandboxArguments(options_.sandbox, &command.arguments);
  command.environment =
      WorkerEnvironment({call.task_.device()}, options_.algorithms_folder, /*gpu_uuids=*/{});
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ProcessGroup> process,
                          ProcessGroup::Start(command, {task.get(), worker_end.get(), errors.get()}));
  worker_end.Reset();

  const absl::Duration deadline = Clock::Real()->Elapsed() + options_.time_limit;
  ModelTaskFrameReader frames;
  std::optional<absl::Status> end;
  while (!end.has_value()) {
    pollfd events[] = {{outputs.get(), POLLIN, 0}, {call.wake_.get(), POLLIN, 0}};
    const absl::Duration left = std::max(deadline - Clock::Real()->Elapsed(), absl::ZeroDuration());
    const int ready = poll(events, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) {
      end = absl::ErrnoToStatus(errno, "cannot wait for a worker");
    } else if (ready == 0 || left == absl::ZeroDuration()) {
      end = absl::DeadlineExceededError(absl::StrCat("cannot finish the call: it took longer than ",
                                                     absl::FormatDuration(options_.time_limit),
                                                     " (--model-time-limit); send less at once"));
    } else if (events[1].revents != 0) {
      end = absl::CancelledError("the client cancelled the call");
    } else if (const absl::StatusOr<bool> more = frames.ReadFrom(outputs.get()); !more.ok()) {
      end = more.status();
    } else {
      while (std::optional<ModelTaskOutput> output = frames.Take()) {
        if (output->has_end()) {
          end = StatusOf(output->end());
        } else {
          call.Deliver(*std::move(output), deadline);
        }
      }
      if (!*more && !end.has_value()) break;
    }
  }
  const std::string how = DescribeEnd(process->Kill(absl::InfiniteDuration()));
  if (end.has_value()) return *end;
  spdlog::warn("a process for a prediction or evaluation {}; its last words: {}", how,
               absl::Utf8SafeCHexEscape(LastWords(errors.get())));
  return absl::InternalError(absl::StrCat("cannot finish the call: its process ", how));
}

}  // namespace tandem
