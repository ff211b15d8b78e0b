#include "absl/strings/str_cat.h"
#include "client/cli/epoch_table.h"
#include "client/cli/format.h"
#include "client/cli/job_display.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/progress_line.h"
#include "client/cli/style.h"

namespace tandem::cli {
namespace {

// Nobody sees faster redraws, and a replayed log arrives much faster.
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(80);

class LiveDisplay : public JobDisplay {
 public:
  LiveDisplay(Terminal& terminal, const std::string& job)
      : terminal_(terminal), job_(job), style_(terminal.Color()), table_(style_) {}

  void SetJob(const v1::Job& job) override { progress_.SetJob(job); }

  void OnEvent(const v1::JobEvent& event) override {
    progress_.Add(event, terminal_.Now());
    switch (event.kind_case()) {
      case v1::JobEvent::kEpoch:
        Above(table_.Row(event.epoch(), terminal_.Width()));
        break;
      case v1::JobEvent::kValidation:
        Above(PlainValidation(event.validation()) + "\n");
        break;
      case v1::JobEvent::kStateChange:
        if (event.state_change().to() == v1::JOB_STATE_PAUSED) {
          Above(absl::StrCat("paused: ", Indented(event.state_change().message()),
                             "\ncontinue with: tandem resume ", job_, "\n"));
        }
        if (event.state_change().reason() == v1::STATE_REASON_RESTARTING) {
          Above(absl::StrCat(style_.Yellow("worker lost: "), Indented(event.state_change().message()), "\n"));
        }
        break;
      case v1::JobEvent::kWorkerLoads:
        Above(PlainWorkerLoads(event.worker_loads()) + "\n");
        break;
      case v1::JobEvent::kNotice:
        Above(absl::StrCat(style_.Yellow("note: "), PlainNotice(event.notice()), "\n"));
        break;
      default:
        break;
    }
    if (event.terminal()) {
      Above(JobEnding(progress_, job_, style_));
      return;
    }
    OnTick();
  }

  void OnTick() override {
    const absl::Time now = terminal_.Now();
    if (progress_.terminal() || now - last_drawn_ < kRedrawInterval) return;
    Draw(now);
  }

  void OnWaiting(const v1::Waiting& waiting) override {
    progress_.SetWaiting(waiting);
    OnTick();
  }

  void OnNote(absl::string_view note) override {
    Above(absl::StrCat(style_.Dim(note), "\n"));
    OnTick();
  }

  void Close() override { Erase(); }

 private:
  void Draw(absl::Time now) {
    // Keeps the last column free, because a terminal may wrap there.
    const std::string line = ProgressLine(progress_, now, terminal_.Width() - 1, terminal_.Unicode(), style_);
    terminal_.Out(absl::StrCat("\r", line, "\x1b[K"));
    drawn_ = true;
    last_drawn_ = now;
  }

  void Erase() {
    if (drawn_) terminal_.Out("\r\x1b[K");
    drawn_ = false;
    last_drawn_ = absl::InfinitePast();
  }

  // Writes permanent lines above the line of progress.
  void Above(absl::string_view lines) {
    Erase();
    terminal_.Out(lines);
  }

  Terminal& terminal_;
  const std::string job_;
  const Style style_;
  EpochTable table_;
  JobProgress progress_;
  bool drawn_ = false;
  absl::Time last_drawn_ = absl::InfinitePast();
};

}  // namespace

std::unique_ptr<JobDisplay> MakeLiveDisplay(Terminal& terminal, const std::string& job) {
  return std::make_unique<LiveDisplay>(terminal, job);
}

}  // namespace tandem::cli
