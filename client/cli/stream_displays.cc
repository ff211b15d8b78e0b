// The displays for programs and files: JSON, YAML and plain lines.

#include "absl/strings/str_cat.h"
#include "client/cli/epoch_table.h"
#include "client/cli/format.h"
#include "client/cli/job_display.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/progress_line.h"
#include "client/cli/waiting_text.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

class StructuredDisplay : public JobDisplay {
 public:
  StructuredDisplay(Terminal& terminal, OutputFormat format) : terminal_(terminal), format_(format) {}
  void OnEvent(const v1::JobEvent& event) override { terminal_.Out(StreamText(format_, event)); }
  void OnNote(absl::string_view note) override { terminal_.Err(absl::StrCat(note, "\n")); }

 private:
  Terminal& terminal_;
  const OutputFormat format_;
};

class PlainDisplay : public JobDisplay {
 public:
  PlainDisplay(Terminal& terminal, const std::string& job, absl::Duration interval)
      : terminal_(terminal), job_(job), interval_(interval) {}

  void SetJob(const v1::Job& job) override { progress_.SetJob(job); }

  void OnEvent(const v1::JobEvent& event) override {
    const absl::Time now = terminal_.Now();
    progress_.Add(event, now);
    switch (event.kind_case()) {
      case v1::JobEvent::kStateChange:
        if (event.terminal()) {
          terminal_.Out(JobEnding(progress_, job_, Style(false)));
        } else {
          const std::string message = Indented(event.state_change().message());
          terminal_.Out(absl::StrCat(ShortEnumName(event.state_change().to()), message.empty() ? "" : ": ",
                                     message, "\n"));
        }
        break;
      case v1::JobEvent::kEpoch:
        terminal_.Out(PlainEpoch(event.epoch()) + "\n");
        last_line_ = now;
        break;
      case v1::JobEvent::kValidation:
        terminal_.Out(PlainValidation(event.validation()) + "\n");
        last_line_ = now;
        break;
      case v1::JobEvent::kWorkerLoads:
        terminal_.Out(PlainWorkerLoads(event.worker_loads()) + "\n");
        break;
      case v1::JobEvent::kNotice:
        terminal_.Out(absl::StrCat("note: ", PlainNotice(event.notice()), "\n"));
        break;
      case v1::JobEvent::kProgress:
        if (now - last_line_ < interval_) break;
        last_line_ = now;
        terminal_.Out(PlainProgress(progress_, now) + "\n");
        break;
      default:
        break;
    }
  }

  void OnWaiting(const v1::Waiting& waiting) override {
    // The estimate changes at each call, so it is not news. A cluster's message has the cluster's reason.
    const bool is_news = !progress_.waiting().has_value() ||
                         waiting.reason() != progress_.waiting()->reason() ||
                         waiting.position() != progress_.waiting()->position() ||
                         (waiting.reason() == v1::Waiting::REASON_CLUSTER &&
                          waiting.message() != progress_.waiting()->message());
    progress_.SetWaiting(waiting);
    if (is_news) terminal_.Out(absl::StrCat("waits: ", WaitingText(waiting, terminal_.Now()), "\n"));
  }

  void OnNote(absl::string_view note) override { terminal_.Err(absl::StrCat(note, "\n")); }

 private:
  Terminal& terminal_;
  const std::string job_;
  const absl::Duration interval_;
  JobProgress progress_;
  absl::Time last_line_ = absl::InfinitePast();
};

}  // namespace

std::unique_ptr<JobDisplay> MakeStructuredDisplay(Terminal& terminal, OutputFormat format) {
  return std::make_unique<StructuredDisplay>(terminal, format);
}

std::unique_ptr<JobDisplay> MakePlainDisplay(Terminal& terminal, const std::string& job,
                                             absl::Duration interval) {
  return std::make_unique<PlainDisplay>(terminal, job, interval);
}

}  // namespace tandem::cli
