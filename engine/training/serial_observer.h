#ifndef TANDEM_ENGINE_TRAINING_SERIAL_OBSERVER_H_
#define TANDEM_ENGINE_TRAINING_SERIAL_OBSERVER_H_

#include <type_traits>

#include "absl/base/thread_annotations.h"
#include "engine/base/mutex.h"
#include "engine/training/trainer.h"

namespace tandem {

// Passes calls to another observer, without overlap, from any thread. Thread-safe.
class SerialObserver final : public TrainerObserver {
 public:
  // `inner` must outlive this object. If null, calls do nothing.
  explicit SerialObserver(TrainerObserver* inner) : inner_(inner) {}

  void OnStarted(int64_t step) override { Tell(&TrainerObserver::OnStarted, step); }
  void OnResumed(const v1::Checkpoint& checkpoint) override { Tell(&TrainerObserver::OnResumed, checkpoint); }
  void OnProgress(const v1::Progress& progress) override { Tell(&TrainerObserver::OnProgress, progress); }
  void OnEpoch(const v1::EpochSummary& epoch) override { Tell(&TrainerObserver::OnEpoch, epoch); }
  void OnValidation(const v1::ValidationResult& result) override {
    Tell(&TrainerObserver::OnValidation, result);
  }
  void OnCheckpoint(const v1::Checkpoint& checkpoint) override {
    Tell(&TrainerObserver::OnCheckpoint, checkpoint);
  }
  void OnBestModel(const v1::BestResult& best) override { Tell(&TrainerObserver::OnBestModel, best); }
  void OnWorkerLoads(const v1::WorkerLoads& loads) override { Tell(&TrainerObserver::OnWorkerLoads, loads); }
  void OnParameters(const v1::ParameterReport& report) override {
    Tell(&TrainerObserver::OnParameters, report);
  }
  void OnNotice(absl::string_view message) override { Tell(&TrainerObserver::OnNotice, message); }

 private:
  template <typename Argument>
  void Tell(void (TrainerObserver::*method)(Argument), std::type_identity_t<Argument> argument) {
    if (inner_ == nullptr) return;
    MutexLock lock(&mutex_);
    (inner_->*method)(argument);
  }

  Mutex mutex_;
  TrainerObserver* const inner_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SERIAL_OBSERVER_H_
