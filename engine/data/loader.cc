#include "engine/data/loader.h"

#include <algorithm>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// Gathering is cheap if it takes less than this part of the time between calls.
constexpr int kCheapPart = 100;
// The number of steps in a row before a change. A single step may be slowed down by other work.
constexpr int kStepsToChange = 16;

}  // namespace

Loader::Loader(const Dataset* dataset, Sampler* sampler, int rank, int64_t first_step, int64_t end, int depth,
               const Clock* clock)
    : dataset_(dataset),
      sampler_(sampler),
      rank_(rank),
      end_(end),
      depth_(depth),
      clock_(clock),
      slots_(depth + 1),
      prepared_(first_step),
      taken_(first_step - 1),
      next_(first_step) {
  const int64_t samples =
      std::max(sampler->ShareSamples(0, rank), sampler->ShareSamples(sampler->steps_per_epoch() - 1, rank));
  for (Slot& slot : slots_) {
    slot.input = Tensor(DType::kUInt8, Shape({samples * dataset->sample_bytes()}));
    slot.target = Tensor(DType::kUInt8, Shape({samples * dataset->target_bytes()}));
  }
  if (depth > 0) StartThread(first_step);
}

Loader::~Loader() {
  StopThread();
  if (thread_.joinable()) thread_.join();
}

int64_t Loader::bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.input.bytes() + slot.target.bytes();
  return bytes;
}

absl::Status Loader::Fill(int64_t step) {
  const absl::Duration begin = clock_->Elapsed();
  const int64_t epoch = 1 + step / sampler_->steps_per_epoch();
  const Sampler::Share share = sampler_->ShareOf(epoch, step % sampler_->steps_per_epoch(), rank_);
  Slot& slot = SlotOf(step);
  slot.samples = share.count;
  const absl::Status status =
      dataset_->GatherEpoch(epoch, share.indices(), slot.input.raw_data(), slot.target.raw_data());
  slot.gathering = clock_->Elapsed() - begin;
  if (status.ok()) return status;
  return DataError(absl::Status(status.code(), absl::StrCat("cannot read samples: ", status.message())));
}

void Loader::StartThread(int64_t step) {
  {
    MutexLock lock(&mutex_);
    prepared_ = step;
    taken_ = step - 1;
    stop_ = ended_ = false;
  }
  try {
    thread_ = std::thread([this, step] { PrepareAhead(step); });
  } catch (const std::exception&) {
    // The system has no memory or thread left. The caller gathers.
  }
}

void Loader::StopThread() {
  MutexLock lock(&mutex_);
  stop_ = true;
}

void Loader::PrepareAhead(int64_t step) {
  for (; step < end_; ++step) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Loader::MayPrepare));
      if (stop_) break;
    }
    try {
      // The caller fills the step again, and gets the error.
      if (!Fill(step).ok()) break;
    } catch (const std::bad_alloc&) {
      MutexLock lock(&mutex_);
      out_of_memory_ = true;
      break;
    }
    MutexLock lock(&mutex_);
    ++prepared_;
  }
  MutexLock lock(&mutex_);
  ended_ = true;
}

bool Loader::AwaitPrepared(int64_t step) {
  MutexLock lock(&mutex_);
  taken_ = step;
  mutex_.Await(absl::Condition(this, &Loader::MayTake));
  if (prepared_ > step) return true;
  // As without a thread.
  if (out_of_memory_) throw std::bad_alloc();
  return false;
}

absl::StatusOr<Batch> Loader::Next() {
  const absl::Duration begin = clock_->Elapsed();
  const int64_t step = next_;
  if (!thread_.joinable()) {
    TANDEM_RETURN_IF_ERROR(Fill(step));
  } else if (!AwaitPrepared(step)) {
    thread_.join();
    TANDEM_RETURN_IF_ERROR(Fill(step));
  }
  ++next_;
  const Slot& slot = SlotOf(step);
  if (depth_ > 0 && last_end_ != absl::InfiniteDuration()) Judge(slot, begin - last_end_);
  last_end_ = clock_->Elapsed();
  waited_ += last_end_ - begin;
  return Batch{.samples = slot.samples, .input = slot.input.raw_data(), .target = slot.target.raw_data()};
}

void Loader::Judge(const Slot& slot, absl::Duration between) {
  const bool is_cheap = slot.gathering * kCheapPart < between;
  const bool has_thread = thread_.joinable();
  contrary_steps_ = is_cheap == has_thread ? contrary_steps_ + 1 : 0;
  if (contrary_steps_ < kStepsToChange) return;
  contrary_steps_ = 0;
  if (has_thread) {
    StopThread();
  } else {
    StartThread(next_);
  }
}

}  // namespace tandem
