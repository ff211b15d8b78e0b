#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/cli/job_display.h"
#include "client/cli/job_ending.h"
#include "client/cli/job_progress.h"
#include "client/cli/live_block.h"
#include "client/cli/plot.h"
#include "client/cli/progress_line.h"
#include "client/cli/style.h"
#include "client/lib/main_metric.h"

namespace tandem::cli {
namespace {

constexpr absl::Duration kPlotInterval = absl::Milliseconds(200);
// From this width, the two plots are side by side.
constexpr int kWideEnough = 100;
constexpr int kTallest = 16;
// The time for which a note follows the line of progress.
constexpr absl::Duration kNoteTime = absl::Seconds(5);
constexpr char kTrainingColor[] = "36";
constexpr char kValidationColor[] = "33";

// The curves of a job's events.
class Curves {
 public:
  void Add(const v1::JobEvent& event) {
    if (event.has_progress()) {
      const v1::Progress& progress = event.progress();
      epochs_ = std::max(epochs_, progress.epochs());
      // The last of the planned epochs may be cut short: the ends of epochs tell more.
      if (steps_per_epoch_ == 0 && progress.epochs() > 0) {
        planned_steps_per_epoch_ = static_cast<double>(progress.steps()) / progress.epochs();
      }
      AddTo(training_, static_cast<double>(progress.step()), progress.training());
    }
    if (event.has_epoch()) {
      const v1::EpochSummary& epoch = event.epoch();
      epochs_ = std::max(epochs_, epoch.epochs());
      const auto x = static_cast<double>(epoch.epoch());
      // An epoch that is cut short has a smaller quotient.
      if (epoch.epoch() > 0)
        steps_per_epoch_ = std::max(steps_per_epoch_, static_cast<double>(epoch.step()) / x);
      AddTo(epoch_training_, x, epoch.training());
      if (epoch.has_validation()) AddTo(validation_, x, epoch.validation());
    }
    if (event.has_validation()) {
      AddTo(within_, static_cast<double>(event.validation().step()), event.validation().validation());
    }
  }

  // Returns the lines of both plots, with `width` columns and at most `height` lines.
  std::vector<std::string> Render(int width, int height, bool unicode, const Style& style) const {
    const bool beside = width >= kWideEnough;
    const int each_width = beside ? (width - 3) / 2 : width;
    const int each_height = std::min(kTallest, beside ? height : height / 2);
    const std::vector<std::string> loss =
        MakePlot("loss", &Curve::loss).Render(each_width, each_height, unicode, style);
    if (metric_.empty()) return loss;
    const std::vector<std::string> metric =
        MakePlot(metric_, &Curve::metric).Render(each_width, each_height, unicode, style);
    std::vector<std::string> lines = loss;
    if (!beside) {
      lines.insert(lines.end(), metric.begin(), metric.end());
      return lines;
    }
    for (size_t i = 0; i < lines.size(); ++i)
      lines[i] = absl::StrCat(PadRight(loss[i], each_width), "   ", metric[i]);
    return lines;
  }

 private:
  struct Curve {
    std::vector<Plot::Point> loss;
    std::vector<Plot::Point> metric;
  };

  void AddTo(Curve& curve, double x, const v1::Evaluation& evaluation) {
    if (!std::isnan(evaluation.loss())) curve.loss.push_back({x, evaluation.loss()});
    if (metric_.empty()) metric_ = client::MainMetric(evaluation);
    const auto found = evaluation.metrics().find(metric_);
    if (found != evaluation.metrics().end()) curve.metric.push_back({x, found->second});
  }

  // Returns points over epochs from points over steps.
  std::vector<Plot::Point> OverEpochs(std::vector<Plot::Point> points) const {
    const double steps_per_epoch = steps_per_epoch_ > 0 ? steps_per_epoch_ : planned_steps_per_epoch_;
    // Before the first report and the first end of an epoch, no step has a place on the axis.
    if (steps_per_epoch <= 0) return {};
    for (Plot::Point& point : points) point.x /= steps_per_epoch;
    return points;
  }

  Plot MakePlot(const std::string& title, std::vector<Plot::Point> Curve::*values) const {
    Plot plot(title);
    // Reports are denser than epochs, but a job may send none.
    plot.Add({"training", kTrainingColor, false,
              training_.loss.size() > 1 ? OverEpochs(training_.*values) : epoch_training_.*values});
    std::vector<Plot::Point> validation = OverEpochs(within_.*values);
    const std::vector<Plot::Point>& ends = validation_.*values;
    validation.insert(validation.end(), ends.begin(), ends.end());
    std::stable_sort(validation.begin(), validation.end(),
                     [](const Plot::Point& left, const Plot::Point& right) { return left.x < right.x; });
    plot.Add({"validation", kValidationColor, true, std::move(validation)});
    plot.SetXRange(0, std::max<double>(1, epochs_));
    return plot;
  }

  Curve training_;                     // Over steps.
  Curve within_;                       // Validations within epochs, over steps.
  Curve epoch_training_, validation_;  // At the ends of epochs, over epochs.
  // The largest step / epoch of the epochs' ends. 0 before the first.
  double steps_per_epoch_ = 0;
  double planned_steps_per_epoch_ = 0;
  std::string metric_;
  int64_t epochs_ = 0;
};

class PlotDisplay : public JobDisplay {
 public:
  PlotDisplay(Terminal& terminal, const std::string& job)
      : terminal_(terminal),
        job_(job),
        style_(terminal.Color()),
        plain_(MakePlainDisplay(terminal, job)),
        block_(terminal) {}

  void SetJob(const v1::Job& job) override {
    progress_.SetJob(job);
    plain_->SetJob(job);
  }

  void OnEvent(const v1::JobEvent& event) override {
    progress_.Add(event, terminal_.Now());
    curves_.Add(event);
    // A job that had ended may continue.
    if (event.has_state_change() && !event.terminal() && finished_) {
      finished_ = false;
      block_.Leave();
    }
    if (event.terminal()) Finish();
    if (!terminal_.Interactive()) {
      plain_->OnEvent(event);
    } else if (event.terminal()) {
      terminal_.Out(JobEnding(progress_, job_, style_));
    } else {
      OnTick();
    }
  }

  void OnTick() override {
    const absl::Time now = terminal_.Now();
    if (!terminal_.Interactive() || finished_ || now - last_drawn_ < kPlotInterval) return;
    Draw(now);
  }

  void OnWaiting(const v1::Waiting& waiting) override {
    progress_.SetWaiting(waiting);
    if (terminal_.Interactive()) {
      OnTick();
    } else {
      plain_->OnWaiting(waiting);
    }
  }

  void OnNote(absl::string_view note) override {
    note_ = std::string(note);
    note_until_ = terminal_.Now() + kNoteTime;
    if (!terminal_.Interactive()) terminal_.Err(absl::StrCat(note, "\n"));
  }

  void Close() override { Finish(); }

 private:
  // Leaves the final plots on the terminal.
  void Finish() {
    if (finished_) return;
    finished_ = true;
    if (terminal_.Interactive()) {
      Draw(terminal_.Now());
      return;
    }
    for (const std::string& line :
         curves_.Render(terminal_.Width(), 2 * kTallest, terminal_.Unicode(), style_)) {
      terminal_.Out(absl::StrCat(line, "\n"));
    }
  }

  void Draw(absl::Time now) {
    const int width = terminal_.Width() - 1;
    std::vector<std::string> lines =
        curves_.Render(width, terminal_.Height() - 3, terminal_.Unicode(), style_);
    if (!finished_) {
      std::string last = ProgressLine(progress_, now, width, terminal_.Unicode(), style_);
      if (now < note_until_) last = Truncate(absl::StrCat(last, "  ", style_.Dim(note_)), width);
      lines.push_back(std::move(last));
    }
    block_.Draw(lines);
    last_drawn_ = now;
  }

  Terminal& terminal_;
  const std::string job_;
  const Style style_;
  const std::unique_ptr<JobDisplay> plain_;
  LiveBlock block_;
  JobProgress progress_;
  Curves curves_;
  std::string note_;
  absl::Time note_until_ = absl::InfinitePast();
  bool finished_ = false;
  absl::Time last_drawn_ = absl::InfinitePast();
};

}  // namespace

std::unique_ptr<JobDisplay> MakePlotDisplay(Terminal& terminal, const std::string& job) {
  return std::make_unique<PlotDisplay>(terminal, job);
}

}  // namespace tandem::cli
