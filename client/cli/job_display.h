#ifndef TANDEM_CLIENT_CLI_JOB_DISPLAY_H_
#define TANDEM_CLIENT_CLI_JOB_DISPLAY_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/output.h"
#include "client/cli/terminal.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// Shows a job's events as they arrive. All calls are on a single thread. OnTick is called about every 100 ms.
class JobDisplay {
 public:
  virtual ~JobDisplay() = default;
  // Takes the facts of the job that no event has, as JobProgress::SetJob. Called before the first event.
  virtual void SetJob(const v1::Job& /*job*/) {}
  virtual void OnEvent(const v1::JobEvent& event) = 0;
  virtual void OnTick() {}
  // The reason why a QUEUED job waits. Called every few seconds.
  virtual void OnWaiting(const v1::Waiting& /*waiting*/) {}
  // A message that is not about the job's events, such as a lost connection.
  virtual void OnNote(absl::string_view note) = 0;
  // The end of the events. Erases lines that are redrawn in place.
  virtual void Close() {}
};

// Writes each event as a line of JSON or as a YAML document. `format` must be one of the two.
std::unique_ptr<JobDisplay> MakeStructuredDisplay(Terminal& terminal, OutputFormat format);

// Writes a line for each change of state and each epoch, and a line of progress at most every `interval`.
// While the job waits, writes a line if the reason changes. `job` is the id for hints.
std::unique_ptr<JobDisplay> MakePlainDisplay(Terminal& terminal, const std::string& job,
                                             absl::Duration interval = absl::Seconds(5));

// Writes a growing table of epochs, and redraws a line of progress below it.
std::unique_ptr<JobDisplay> MakeLiveDisplay(Terminal& terminal, const std::string& job);

// Draws curves of loss and accuracy. Redraws them in place on a terminal; otherwise draws them once, at the
// end.
std::unique_ptr<JobDisplay> MakePlotDisplay(Terminal& terminal, const std::string& job);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_DISPLAY_H_
