#ifndef TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "client/dashboard/job_feed.h"
#include "client/dashboard/web_server.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// Sends a job's log as Server-Sent Events, after WebAnswer::Begin. Returns when the job has ended, the
// browser has left, or `goes_on` returns false. `after` is the last sequence number that the page has, 0 at
// first.
//
// With `after` 0, an event `snapshot` brings the history: all pages of a GetJobHistoryResponse as one
// message. Then each later event of the log comes as `event`, a JobEvent. Both are in the JSON of Protocol
// Buffers, and have the last sequence number as their id. `disconnected` and `connected` report the
// connection to the daemon. `problem` reports that the log cannot be read (ErrorInJson). `end` reports that
// all events were sent. `reset` reports that the log ends before `after`, as after the restore of a backup:
// the page must begin again with 0. If `once`, the stream ends after the event that was the newest at the
// call.
void StreamJob(client::Client& client, JobFeeds& feeds, const std::string& name, int64_t after, bool once,
               const std::function<bool()>& goes_on, WebAnswer& answer);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_STREAM_H_
