#include "server/rpc/token_watch.h"

#include <utility>

namespace tandem {

TokenWatch::TokenWatch(const Authenticator* authenticator, OpenCalls* calls, std::vector<FairPool*> pools,
                       absl::Duration interval)
    : authenticator_(authenticator),
      calls_(calls),
      pools_(std::move(pools)),
      interval_(interval),
      thread_([this] { Run(); }) {}

TokenWatch::~TokenWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void TokenWatch::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
    const auto check = [this](const Caller& caller) { return authenticator_->CheckStillValid(caller); };
    calls_->streams.EndWhere(check);
    calls_->unary.EndWhere(check);
    for (FairPool* const pool : pools_) pool->DropUnwanted();
  }
}

}  // namespace tandem
