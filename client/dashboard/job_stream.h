#ifndef TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "client/dashboard/web_server.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// Sends a job's log as Server-Sent Events, in an answer that has begun, until the job has ended, the browser
// is gone or `goes_on` is false. `after` is the last sequence number that the page has, 0 at first.
//
// With `after` 0, the history comes first, as one `snapshot`: {"sequence": of the last event, "progress":
// columns of the reports of training, each with a value for each report: {"sequence", "step", "epoch", "time"
// (seconds since 1970), "attempt", "training/loss", "training/<metric>", "learning_rate",
// "images_per_second", ...}, "events": [all other events]}. Then each event comes as `event`, with its
// sequence number as the id. Events are JobEvents in the JSON of Protocol Buffers; numbers that are not
// finite are null in columns.
//
// `disconnected` and `connected` tell of the daemon, `problem` that the log cannot be read (ErrorInJson),
// `end` that all has come.
void StreamJob(client::Client& client, const std::string& name, int64_t after,
               const std::function<bool()>& goes_on, WebAnswer& answer);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
