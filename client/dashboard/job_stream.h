#ifndef TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "client/dashboard/web_server.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// Sends a job's log as Server-Sent Events, after WebAnswer::Begin. Returns when the job has ended, the
// browser has left, or `goes_on` returns false. `after` is the last sequence number that the page has, 0 at
// first.
//
// With `after` 0, one event `snapshot` brings the history:
//
//   "sequence": of the last event
//   "progress": columns of all reports of training, of one length: "sequence", "step", "steps", "epochs",
//               "attempt", "time" (seconds since 1970), "training/loss", "training/<metric>",
//               "learning_rate", "images_per_second"; null for a number that is not finite or is missing
//   "events":   all other events
//
// Each later event is sent as `event`, with its sequence number as the id. Events are JobEvents in the JSON
// of Protocol Buffers. `disconnected` and `connected` report the connection to the daemon. `problem` reports
// that the log cannot be read (ErrorInJson). `end` reports that all events were sent.
void StreamJob(client::Client& client, const std::string& name, int64_t after,
               const std::function<bool()>& goes_on, WebAnswer& answer);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
