#ifndef TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_

#include <deque>
#include <nlohmann/json.hpp>

#include "tandem/v1/job.pb.h"

namespace tandem::dashboard {

// What the list of jobs shows of a job:
//
//   {"name": "jobs/lenet-k3v7qa", "display_name", "user", "state": "RUNNING", "reason", "message",
//   "priority", "sweep",
//    "create_time", "start_time", "end_time",          seconds since 1970
//    "epoch", "epochs", "step", "steps", "rate",       samples a second
//    "loss", "metric": "accuracy", "value",            the newest validation's, else the newest report's
//    "seconds_left", "devices": ["cpu:0"], "spark": [losses]}
//
// A value that is not known is left out; a number that is not finite is null. `losses` are the newest losses
// of training, the oldest first. `now` is seconds since 1970.
nlohmann::json JobRow(const v1::Job& job, const std::deque<double>& losses, double now);

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_ROW_H_
