#ifndef TANDEM_CLIENT_CLI_JOB_DISPLAY_H_
#define TANDEM_CLIENT_CLI_JOB_DISPLAY_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/terminal.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// Shows a job's events as they come. Calls come on one thread, OnTick at least every 100 ms or so.
class JobDisplay {
 public:
  virtual ~JobDisplay() = default;
  virtual void OnEvent(const v1::JobEvent& event) = 0;
  virtual void OnTick() {}
  // Why the job, which is QUEUED, waits; again every few seconds.
  virtual void OnWaiting(const v1::Waiting& /*waiting*/) {}
  // A line about something beside the job's events, such as a lost connection.
  virtual void OnNote(absl::string_view note) = 0;
  // Nothing more comes; what was drawn in place is put away.
  virtual void Close() {}
};

// One JSON object a line, each event whole.
std::unique_ptr<JobDisplay> MakeJsonDisplay(Terminal& terminal);

// One YAML document an event.
std::unique_ptr<JobDisplay> MakeYamlDisplay(Terminal& terminal);

// A line for each change of state and epoch, and one for progress at most every `interval`. While the job
// waits, a line if the reason changes. `job` is the id for hints.
std::unique_ptr<JobDisplay> MakePlainDisplay(Terminal& terminal, const std::string& job,
                                             absl::Duration interval = absl::Seconds(5));

// A table of epochs that grows, and under it a line of progress that is redrawn in place.
std::unique_ptr<JobDisplay> MakeLiveDisplay(Terminal& terminal, const std::string& job);

// Curves of loss and accuracy, redrawn in place on a terminal and drawn once at the end elsewhere.
std::unique_ptr<JobDisplay> MakePlotDisplay(Terminal& terminal, const std::string& job);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_DISPLAY_H_
