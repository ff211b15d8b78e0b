#ifndef TANDEM_CLIENT_LIB_WHILE_FETCHING_H_
#define TANDEM_CLIENT_LIB_WHILE_FETCHING_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/steady_now.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem::client {

// Looks on while the daemon fetches data that a call needs. Not thread-safe.
class FetchObserver {
 public:
  virtual ~FetchObserver() = default;
  // How far it is; every few seconds. False: the call is not repeated, and ends with the daemon's
  // UNAVAILABLE. The daemon goes on all the same.
  virtual bool OnFetching(const v1::FetchProgress& progress) = 0;
  // It is over, one way or the other. Only after OnFetching.
  virtual void OnFetched() {}
};

// Whether the daemon answered that it is fetching data that the call needs.
bool IsBeingFetched(const absl::Status& status);
// How far it is, as that answer says.
v1::FetchProgress FetchProgressOf(const absl::Status& status);

// Calls until the daemon has the data that the call needs, which must be safe to repeat. `call` gives
// something with a status(). `observer` may be null.
template <typename Call>
auto WhileFetching(FetchObserver* observer, Call call) {
  // The daemon answers every few seconds; this is for one that does not wait at all.
  constexpr absl::Duration kLeastInterval = absl::Seconds(1);
  bool observed = false;
  absl::Status fetching;
  while (true) {
    const absl::Duration begin = SteadyNow();
    auto result = call();
    // Who leaves meanwhile is told of the fetching, as this is what the daemon goes on with.
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
