#include "engine/data/loader.h"

#include <algorithm>
#include <chrono>
#include <new>

namespace tandem {

Loader::Loader(const Dataset* dataset, Sampler* sampler, int rank, int64_t first_step, int64_t steps,
               int depth)
    : dataset_(dataset),
      sampler_(sampler),
      rank_(rank),
      first_step_(first_step),
      steps_(steps),
      depth_(depth),
      slots_(depth + 1),
      prepared_(first_step),
      taken_(first_step - 1),
      next_(first_step_) {
  const int64_t samples =
      std::max(sampler->ShareSamples(0, rank), sampler->ShareSamples(sampler->steps_per_epoch() - 1, rank));
  for (Slot& slot : slots_) {
    slot.input = Tensor(DType::kUInt8, Shape({samples * dataset->sample_bytes()}));
    slot.target = Tensor(DType::kUInt8, Shape({samples * dataset->target_bytes()}));
  }
  if (depth > 0) thread_ = std::thread([this] { PrepareAhead(); });
}

Loader::~Loader() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

int64_t Loader::bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.input.bytes() + slot.target.bytes();
  return bytes;
}

void Loader::Fill(int64_t step) {
  const int64_t epoch = 1 + step / sampler_->steps_per_epoch();
  const Sampler::Share share = sampler_->ShareOf(epoch, step % sampler_->steps_per_epoch(), rank_);
  Slot& slot = SlotOf(step);
  slot.samples = share.count;
  dataset_->GatherEpoch(epoch, share.indices(), slot.input.raw_data(), slot.target.raw_data());
}

void Loader::PrepareAhead() {
  for (int64_t step = first_step_; step < steps_; ++step) {
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Loader::MayPrepare));
      if (stop_) return;
    }
    try {
      Fill(step);
    } catch (const std::bad_alloc&) {
      MutexLock lock(&mutex_);
      out_of_memory_ = true;
      return;
    }
    MutexLock lock(&mutex_);
    ++prepared_;
  }
}

Batch Loader::Next() {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t step = next_++;
  if (depth_ == 0) {
    Fill(step);
  } else {
    MutexLock lock(&mutex_);
    taken_ = step;
    mutex_.Await(absl::Condition(this, &Loader::MayTake));
    // As it would be without a thread.
    if (prepared_ <= taken_) throw std::bad_alloc();
  }
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Slot& slot = SlotOf(step);
  return {.samples = slot.samples, .input = slot.input.raw_data(), .target = slot.target.raw_data()};
}

}  // namespace tandem
