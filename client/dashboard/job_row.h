#ifndef TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_

#include <deque>
#include <nlohmann/json.hpp>

#include "tandem/v1/job.pb.h"

namespace tandem::dashboard {

// Returns the list's row of a job:
//
//   {"name": "jobs/lenet-k3v7qa", "display_name", "user", "state": "RUNNING", "reason", "message",
//   "priority", "sweep",
//    "create_time", "start_time", "end_time",          seconds since 1970; start_time is of the last attempt
//    "run_seconds",                                    of all attempts
//    "epoch", "epochs", "step", "steps", "rate",       samples a second
//    "loss", "metric": "accuracy", "value",            the newest validation's, else the newest report's
//    "smaller_is_better": true,                        missing if larger values of the metric are better
//    "seconds_left", "devices": ["cpu:0"], "spark": [losses]}
//
// Unknown values are missing. A number that is not finite is null. `losses` are the newest training losses,
// oldest first. `now` is in seconds since 1970.
nlohmann::json JobRow(const v1::Job& job, const std::deque<double>& losses, double now);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_
