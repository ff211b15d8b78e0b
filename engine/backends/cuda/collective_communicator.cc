#include "engine/backends/cuda/collective_communicator.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/backend/collective_time_limit.h"
#include "engine/backends/cuda/kernels/ranks.h"
#include "engine/base/clock.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

constexpr absl::Duration kJoinTimeout = absl::Minutes(2);
// The number of polls without a pause. Later polls have short pauses.
constexpr int kEagerLooks = 1000;
constexpr std::chrono::microseconds kPause(20);
// The interval of checks on reductions that nobody awaits.
constexpr absl::Duration kWatchEvery = absl::Milliseconds(10);

bool IsSwitchedOff() {
  const char* asked = std::getenv("TANDEM_NCCL");
  return asked != nullptr && std::strcmp(asked, "0") == 0;
}

}  // namespace

CollectiveCommunicator::CollectiveCommunicator(std::shared_ptr<DeviceContext> device, Communicator* host)
    : device_(device),
      host_(host),
      reductions_(device),
      staged_(std::move(device), host),
      time_limit_(CollectiveTimeLimit()) {}

CollectiveCommunicator::~CollectiveCommunicator() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
    // After a failure, work in the streams may never end.
    if (collective_ != nullptr && !host_->status().ok()) collective_->Abort();
  }
  if (watch_.joinable()) watch_.join();
}

absl::StatusOr<bool> CollectiveCommunicator::AllHave(bool value) {
  int64_t count = value ? 1 : 0;
  TANDEM_RETURN_IF_ERROR(host_->AllReduce({&count, 1, DType::kInt64}, ReduceOp::kSum));
  return count == world_size();
}

absl::StatusOr<bool> CollectiveCommunicator::Join() {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  if (!time_limit_.ok()) {
    // The others may have another environment, and wait.
    Abort(time_limit_.status());
    return time_limit_.status();
  }
  TANDEM_ASSIGN_OR_RETURN(const bool possible, AllHave(!IsSwitchedOff() && CheckCollectives().ok()));
  if (!possible) return false;
  std::string id(kCollectiveIdBytes, '\0');
  bool has_id = true;
  if (rank() == 0) {
    absl::StatusOr<std::string> made = MakeCollectiveId();
    has_id = made.ok();
    if (has_id) id = *std::move(made);
  }
  TANDEM_RETURN_IF_ERROR(host_->Broadcast({id.data(), kCollectiveIdBytes, DType::kUInt8}, 0));
  TANDEM_ASSIGN_OR_RETURN(const bool all_have_id, AllHave(has_id));
  if (!all_have_id) return false;
  absl::StatusOr<std::unique_ptr<Collective>> joined = JoinCollective(id, rank(), world_size(), kJoinTimeout);
  TANDEM_ASSIGN_OR_RETURN(const bool all_joined, AllHave(joined.ok()));
  if (!all_joined) return false;
  TANDEM_ASSIGN_OR_RETURN(done_, Event::Create());
  MutexLock lock(&mutex_);
  collective_ = *std::move(joined);
  joined_ = collective_.get();
  if (aborted_) collective_->Abort();
  return true;
}

absl::StatusOr<bool> CollectiveCommunicator::Agree(Call call, int root, BufferView buffer) {
  const bool possible =
      call == Call::kBroadcast ? root >= 0 && root < world_size() : CanSumRanks(buffer.dtype);
  const std::vector<int64_t> own = {static_cast<int64_t>(call), root, buffer.elements,
                                    static_cast<int64_t>(buffer.dtype), possible ? 1 : 0};
  // In a sum over ranks, each row comes from a single rank, so the sum gathers the rows.
  std::vector<int64_t> rows(own.size() * world_size(), 0);
  std::copy(own.begin(), own.end(), rows.begin() + rank() * own.size());
  TANDEM_RETURN_IF_ERROR(
      host_->AllReduce({rows.data(), static_cast<int64_t>(rows.size()), DType::kInt64}, ReduceOp::kSum));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != rows[i % own.size()]) return false;
  }
  return rows[own.size() - 1] == 1;
}

absl::Status CollectiveCommunicator::Finish(absl::Status status) {
  const absl::Duration deadline = Clock::Real()->Elapsed() + *time_limit_;
  if (status.ok()) status = done_->Record(device_->stream->get());
  for (int looks = 0; status.ok(); ++looks) {
    const absl::StatusOr<bool> reached = done_->Reached();
    // An abort also ends it.
    if (reached.ok() && *reached) return host_->status();
    status = reached.ok() ? joined_->Check() : reached.status();
    if (looks < kEagerLooks) continue;
    std::this_thread::sleep_for(kPause);
    // NCCL does not know of ranks that failed elsewhere.
    if (status.ok()) status = host_->status();
    if (status.ok() && Clock::Real()->Elapsed() > deadline) {
      status =
          absl::DeadlineExceededError(absl::StrCat("rank ", rank(), " has waited for its GPU for ",
                                                   absl::FormatDuration(*time_limit_), " in a collective"));
    }
  }
  // All ranks return the first reason: this error or an abort.
  Abort(status);
  return host_->Barrier();
}

void CollectiveCommunicator::Watch() {
  absl::Status status = UseDevice(device_->ordinal);
  while (status.ok()) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&ends_), kWatchEvery) || aborted_) return;
    }
    status = host_->status();
    if (status.ok()) status = joined_->Check();
    const absl::StatusOr<bool> reached = reductions_.Reached();
    if (status.ok()) status = reached.status();
    if (!status.ok() || *reached) continue;
    // Read after the poll, so that a newer reduction does not count as old.
    MutexLock lock(&mutex_);
    if (Clock::Real()->Elapsed() - begun_at_ > *time_limit_) {
      status = absl::DeadlineExceededError(absl::StrCat("rank ", rank(),
                                                        "'s GPU has not come through a reduction for ",
                                                        absl::FormatDuration(*time_limit_)));
    }
  }
  Abort(status);
}

absl::StatusOr<int64_t> CollectiveCommunicator::BeginAllReduce(BufferView buffer, ReduceOp op) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  const Call call = op == ReduceOp::kAverage ? Call::kAverage : Call::kSum;
  const auto brought = std::make_tuple(call, buffer.elements, buffer.dtype);
  bool agreed = joined_ != nullptr && agreed_.count(brought) > 0;
  if (joined_ != nullptr && !agreed) {
    TANDEM_ASSIGN_OR_RETURN(agreed, Agree(call, 0, buffer));
    if (agreed) agreed_.insert(brought);
  }
  if (!agreed) {
    TANDEM_RETURN_IF_ERROR(reductions_.AwaitAll());
    TANDEM_RETURN_IF_ERROR(staged_.AllReduce(buffer, op));
    return 0;
  }
  TANDEM_ASSIGN_OR_RETURN(const Stream stream, reductions_.Begin());
  {
    MutexLock lock(&mutex_);
    begun_at_ = Clock::Real()->Elapsed();
  }
  if (!watch_.joinable()) watch_ = std::thread([this] { Watch(); });
  absl::Status status =
      joined_->AllReduce(buffer.data, buffer.elements, buffer.dtype, op == ReduceOp::kAverage, stream);
  absl::StatusOr<int64_t> begun = reductions_.End();
  if (status.ok() && begun.ok()) return begun;
  (void)reductions_.AwaitAll();
  // All ranks return the first reason: this error or an abort.
  if (status.ok()) status = begun.status();
  Abort(status);
  const absl::Status first = host_->Barrier();
  return first.ok() ? status : first;
}

absl::Status CollectiveCommunicator::Await(int64_t begun) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(reductions_.Await(begun));
  return host_->status();
}

absl::Status CollectiveCommunicator::AllReduce(BufferView buffer, ReduceOp op) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(reductions_.AwaitAll());
  const bool average = op == ReduceOp::kAverage;
  // The host's communicator does or refuses calls that differ or that NCCL does not do.
  if (joined_ == nullptr) return staged_.AllReduce(buffer, op);
  TANDEM_ASSIGN_OR_RETURN(const bool agreed, Agree(average ? Call::kAverage : Call::kSum, 0, buffer));
  if (!agreed) return staged_.AllReduce(buffer, op);
  return Finish(
      joined_->AllReduce(buffer.data, buffer.elements, buffer.dtype, average, device_->stream->get()));
}

absl::Status CollectiveCommunicator::Broadcast(BufferView buffer, int root) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(reductions_.AwaitAll());
  if (joined_ == nullptr) return staged_.Broadcast(buffer, root);
  TANDEM_ASSIGN_OR_RETURN(const bool agreed, Agree(Call::kBroadcast, root, buffer));
  if (!agreed) return staged_.Broadcast(buffer, root);
  return Finish(joined_->Broadcast(buffer.data, buffer.elements, buffer.dtype, root, device_->stream->get()));
}

void CollectiveCommunicator::Abort(absl::Status status) {
  host_->Abort(std::move(status));
  std::shared_ptr<Collective> collective;
  {
    MutexLock lock(&mutex_);
    aborted_ = true;
    collective = collective_;
  }
  if (collective != nullptr) collective->Abort();
}

}  // namespace tandem::cuda
