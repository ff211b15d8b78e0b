#include "server/rpc/token_watch.h"

namespace tandem {

TokenWatch::TokenWatch(const Authenticator* authenticator, ActiveStreams* streams, absl::Duration interval)
    : authenticator_(authenticator), streams_(streams), interval_(interval), thread_([this] { Run(); }) {}

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
    streams_->EndWhere([this](const Caller& caller) { return authenticator_->CheckStillValid(caller); });
  }
}

}  // namespace tandem
