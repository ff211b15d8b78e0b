#include "server/workers/model_workers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/error_reason.h"
#include "engine/base/process_group.h"
#include "engine/base/retry_delay.h"
#include "engine/base/status_macros.h"
#include "server/workers/worker_launcher.h"

namespace tandem {
namespace {

using internal::v1::ModelTaskOutput;

// The most outputs that are kept for a slow client. A worker with more waits.
constexpr size_t kMostKept = 8;
// A refused caller may call again after this delay. The end of a running call is unknown.
constexpr absl::Duration kBusyDelay = absl::Seconds(5);
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
        WithReason(absl::ResourceExhaustedError(absl::StrCat(
                       "cannot take another prediction, evaluation or export: ", options_.most_running,
                       " may run and ", options_.most_waiting, " may wait, ", options_.most_waiting_each,
                       " of them of one user; try again later")),
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
  MutexLock kept_lock(&mutex_);
  kept_.clear();
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
    std::unique_ptr<ModelProcess> idle;
    {
      MutexLock lock(&mutex_);
      const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return HasWork(); };
      const absl::Duration until = kept_.empty() ? absl::InfiniteDuration() : kept_.front().until;
      const bool has_work = mutex_.AwaitWithTimeout(absl::Condition(&work), until - Clock::Real()->Elapsed());
      if (stopping_) return;
      if (!kept_.empty() && kept_.front().until <= Clock::Real()->Elapsed()) {
        idle = std::move(kept_.front().process);
        kept_.pop_front();
      }
      if (has_work) {
        call = TakeNext();
        running_.push_back(call);
      }
    }
    idle = nullptr;  // Ends it, without the lock.
    if (call == nullptr) continue;
    if (!call->ended()) call->End(Run(*call));
    MutexLock lock(&mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), call));
  }
}

absl::Status ModelWorkers::Run(ModelCall& call) {
  const absl::Duration start = Clock::Real()->Elapsed();
  bool has_output = false;
  const auto deliver = [&](ModelTaskOutput output, absl::Duration deadline) {
    has_output = true;
    call.Deliver(std::move(output), deadline);
  };
  const auto perform = [&](ModelProcess& process) {
    return process.Perform(call.task_, call.wake_.get(), start, options_.time_limit, deliver);
  };
  std::unique_ptr<ModelProcess> process = TakeKept(call);
  std::optional<absl::Status> end;
  if (process != nullptr && process->IsReady()) end = perform(*process);
  // A process that died while it waited is no fault of the call. Its end may show only now.
  if (!end.has_value() || (process->has_died() && !has_output)) {
    TANDEM_ASSIGN_OR_RETURN(process, StartProcess(call.task_));
    end = perform(*process);
  }
  // After another error the process may lack the model. It cannot read the model later: its sandbox allows
  // the files that existed at its start.
  const bool has_model = end->ok() || absl::IsInvalidArgument(*end);
  if (has_model && process->IsReady()) Keep(call, std::move(process));
  return *end;
}

absl::StatusOr<std::unique_ptr<ModelProcess>> ModelWorkers::StartProcess(
    const internal::v1::ModelTask& task) const {
  ProcessGroup::Command command;
  command.program = options_.worker_program;
  command.arguments = {"--model-task", task.has_data() ? "a data set" : task.model_path()};
  AddSandboxArguments(options_.sandbox, &command.arguments);
  command.environment = WorkerEnvironment({task.device()}, options_.algorithms_folder, /*gpu_uuids=*/{});
  return ModelProcess::Start(command);
}

bool ModelWorkers::MayKeep(const internal::v1::ModelTask& task) {
  // The memory of a data set would stay. A model without a checksum may change between two calls.
  return task.has_predict() && !task.has_dataset() && !task.model_sha256().empty();
}

bool ModelWorkers::IsFor(const KeptProcess& kept, const ModelCall& call) {
  return MayKeep(call.task_) && kept.user == call.user_ && kept.model_path == call.task_.model_path() &&
         kept.model_sha256 == call.task_.model_sha256();
}

std::unique_ptr<ModelProcess> ModelWorkers::TakeKept(const ModelCall& call) {
  MutexLock lock(&mutex_);
  // The newest, so that more processes of a model than its calls need expire.
  const auto kept = std::find_if(kept_.rbegin(), kept_.rend(),
                                 [&call](const KeptProcess& other) { return IsFor(other, call); });
  if (kept == kept_.rend()) return nullptr;
  std::unique_ptr<ModelProcess> process = std::move(kept->process);
  kept_.erase(std::next(kept).base());
  return process;
}

void ModelWorkers::Keep(const ModelCall& call, std::unique_ptr<ModelProcess> process) {
  if (options_.idle_time == absl::ZeroDuration() || !MayKeep(call.task_)) return;
  std::unique_ptr<ModelProcess> oldest;  // Ends without the lock.
  MutexLock lock(&mutex_);
  if (stopping_) return;
  kept_.push_back({.user = call.user_,
                   .model_path = call.task_.model_path(),
                   .model_sha256 = call.task_.model_sha256(),
                   .until = Clock::Real()->Elapsed() + options_.idle_time,
                   .process = std::move(process)});
  if (kept_.size() <= static_cast<size_t>(options_.most_running)) return;
  oldest = std::move(kept_.front().process);
  kept_.pop_front();
}

}  // namespace tandem
