#include "client/cli/progress_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/format.h"
#include "client/cli/waiting_text.h"
#include "client/lib/main_metric.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {
namespace {

constexpr int kNarrowestBar = 10;
constexpr int kWidestBar = 40;

std::string Repeat(absl::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) absl::StrAppend(&result, text);
  return result;
}

int Percent(double fraction) { return static_cast<int>(std::floor(fraction * 100)); }

// Returns "loss 0.3910" and "acc 0.8590".
std::vector<std::string> Measures(const v1::Evaluation& evaluation) {
  std::vector<std::string> measures = {absl::StrCat("loss ", FormatMeasure(evaluation.loss()))};
  if (const std::string metric = client::MainMetric(evaluation); !metric.empty()) {
    measures.push_back(
        absl::StrCat(ShortMetricName(metric), " ", FormatMeasure(evaluation.metrics().at(metric))));
  }
  return measures;
}

std::string WaitingLine(const JobProgress& job, absl::Time now, bool unicode, const Style& style) {
  static constexpr const char* kUnicodeFrames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
  static constexpr const char* kAsciiFrames[] = {"|", "/", "-", "\\"};
  const int64_t tick = absl::ToUnixMillis(now) / 100;
  const char* frame = unicode ? kUnicodeFrames[tick % 10] : kAsciiFrames[tick % 4];
  const absl::Duration since =
      job.state_since() == absl::InfinitePast() ? absl::ZeroDuration() : now - job.state_since();
  const std::string state = job.state() == v1::JOB_STATE_UNSPECIFIED ? "waiting" : ShortEnumName(job.state());
  const std::string message = absl::StrReplaceAll(
      job.waiting().has_value() ? WaitingText(*job.waiting(), now) : job.last_change().message(),
      {{"\n", " "}});
  return absl::StrCat(style.Cyan(frame), " ", style.Bold(state), "  ", FormatClock(since),
                      message.empty() ? "" : "  " + message);
}

}  // namespace

std::string ProgressBar(double fraction, int width, bool unicode, const Style& style) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  if (!unicode) {
    const int full = static_cast<int>(fraction * width);
    return absl::StrCat(Repeat("#", full), Repeat("-", width - full));
  }
  const int halves = static_cast<int>(fraction * width * 2);
  const bool half = halves % 2 == 1;
  const int full = halves / 2;
  return absl::StrCat(style.Green(absl::StrCat(Repeat("━", full), half ? "╸" : "")),
                      style.Dim(Repeat("─", width - full - (half ? 1 : 0))));
}

std::string ProgressLine(const JobProgress& job, absl::Time now, int width, bool unicode,
                         const Style& style) {
  if (job.waiting().has_value() || (!job.progress().has_value() && !job.last_epoch().has_value())) {
    return Truncate(WaitingLine(job, now, unicode, style), width);
  }
  const v1::Progress progress = job.progress().value_or(v1::Progress());
  const int64_t epoch =
      std::max(progress.epoch(), job.last_epoch().has_value() ? job.last_epoch()->epoch() : 0);
  const int64_t epochs =
      std::max(progress.epochs(), job.last_epoch().has_value() ? job.last_epoch()->epochs() : 0);
  const bool trains = job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_UNSPECIFIED;
  const std::string head =
      absl::StrCat(trains ? "" : ShortEnumName(job.state()) + ", ", "epoch ", epoch, "/", epochs);
  // In the order of importance. Facts that do not fit beside the narrowest bar are left out.
  std::vector<std::string> facts = {absl::StrFormat("%3d%%", Percent(job.Fraction()))};
  if (const auto left = job.TimeLeft(now)) facts.push_back(FormatClock(*left) + " left");
  if (job.progress().has_value()) {
    for (std::string& measure : Measures(progress.training())) facts.push_back(std::move(measure));
    facts.push_back(FormatRate(progress.images_per_second()) + " samples/s");
    facts.push_back(absl::StrCat("step ", FormatCount(progress.step()), "/", FormatCount(progress.steps())));
    if (progress.loss_scale() != 0) {
      facts.push_back(absl::StrCat("loss scale ", FormatSetting(progress.loss_scale())));
    }
  }
  std::string tail;
  int bar = width - DisplayWidth(head) - 4;
  for (const std::string& fact : facts) {
    const int cost = DisplayWidth(fact) + 2;
    if (bar - cost < kNarrowestBar) break;
    bar -= cost;
    absl::StrAppend(&tail, "  ", fact);
  }
  bar = std::clamp(bar, 0, kWidestBar);
  return Truncate(
      absl::StrCat(style.Bold(head), "  ", ProgressBar(job.Fraction(), bar, unicode, style), tail), width);
}

std::string PlainProgress(const JobProgress& job, absl::Time now) {
  if (!job.progress().has_value()) return ShortEnumName(job.state());
  const v1::Progress& progress = *job.progress();
  std::vector<std::string> facts = {
      absl::StrCat("epoch ", progress.epoch(), "/", progress.epochs()),
      absl::StrCat("step ", FormatCount(progress.step()), "/", FormatCount(progress.steps()), " (",
                   Percent(job.Fraction()), "%)")};
  for (std::string& measure : Measures(progress.training())) facts.push_back(std::move(measure));
  facts.push_back(FormatRate(progress.images_per_second()) + " samples/s");
  if (progress.loss_scale() != 0) {
    facts.push_back(absl::StrCat("loss scale ", FormatSetting(progress.loss_scale())));
  }
  if (const auto left = job.TimeLeft(now)) facts.push_back(FormatClock(*left) + " left");
  return absl::StrJoin(facts, "  ");
}

}  // namespace tandem::cli
