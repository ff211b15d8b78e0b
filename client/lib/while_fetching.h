#ifndef TANDEM_CLIENT_LIB_WHILE_FETCHING_H_
#define TANDEM_CLIENT_LIB_WHILE_FETCHING_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/steady_now.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::client {

// Observes a call while the daemon fetches its data. Not thread-safe.
class FetchObserver {
 public:
  virtual ~FetchObserver() = default;
  // Called every few seconds with the progress. Returning false ends the call with the daemon's UNAVAILABLE.
  // The daemon continues the fetch.
  virtual bool OnFetching(const v1::FetchProgress& progress) = 0;
  // Called at the end of the fetch, whether it succeeded or failed. Only after OnFetching.
  virtual void OnFetched() {}
};

// Returns whether the daemon answered that it is fetching the call's data.
bool IsBeingFetched(const absl::Status& status);
// Returns the progress in this answer.
v1::FetchProgress FetchProgressOf(const absl::Status& status);

// Repeats a call until the daemon has the call's data. The call must be safe to repeat. `call` returns an
// object with a status(). `observer` may be null.
template <typename Call>
auto WhileFetching(FetchObserver* observer, Call call) {
  // The daemon waits a few seconds before each answer. This interval limits the calls to a daemon that does
  // not wait.
  constexpr absl::Duration kLeastInterval = absl::Seconds(1);
  bool observed = false;
  absl::Status fetching;
  while (true) {
    const absl::Duration begin = SteadyNow();
    auto result = call();
    // A user who stops the wait gets the fetch's status, because the daemon continues the fetch.
    if (observed && absl::IsCancelled(result.status())) result = fetching;
    if (!IsBeingFetched(result.status()) ||
        (observer != nullptr && !observer->OnFetching(FetchProgressOf(result.status())))) {
      if (observed) observer->OnFetched();
      return result;
    }
    observed = observer != nullptr;
    fetching = result.status();
    absl::SleepFor(begin + kLeastInterval - SteadyNow());
  }
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_WHILE_FETCHING_H_
