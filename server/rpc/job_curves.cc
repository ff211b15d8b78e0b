#include "server/rpc/job_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem {

void ReducedCurve::Add(int64_t sequence, const CurvePoint& point) {
  if (last_step_.has_value() && point.step <= *last_step_) {
    while (!rewinds_.empty() && rewinds_.back().step >= point.step) rewinds_.pop_back();
    rewinds_.push_back({.sequence = sequence, .step = point.step});
    if (is_reduced_) {
      needs_second_reading_ = true;
    } else {
      while (!points_.empty() && points_.back().step >= point.step) points_.pop_back();
      total_points_ = static_cast<int64_t>(points_.size());
    }
  }
  last_step_ = point.step;
  if (!needs_second_reading_ && Covers(point.step)) Keep(point);
}

void ReducedCurve::BeginSecondReading() {
  needs_second_reading_ = false;
  is_reduced_ = false;
  total_points_ = 0;
  points_ = {};
  spans_ = {};
  span_bits_ = 0;
  next_rewind_ = 0;
}

void ReducedCurve::AddAgain(int64_t sequence, const CurvePoint& point) {
  while (next_rewind_ < rewinds_.size() && rewinds_[next_rewind_].sequence <= sequence) ++next_rewind_;
  const bool is_replaced = next_rewind_ < rewinds_.size() && rewinds_[next_rewind_].step <= point.step;
  if (!is_replaced && Covers(point.step)) Keep(point);
}

void ReducedCurve::Keep(const CurvePoint& point) {
  ++total_points_;
  if (is_reduced_) {
    KeepInSpan(point);
    return;
  }
  points_.push_back(point);
  if (points_.size() <= static_cast<size_t>(range_.max_points)) return;
  is_reduced_ = true;
  for (const CurvePoint& one : std::exchange(points_, {})) KeepInSpan(one);
}

void ReducedCurve::KeepInSpan(const CurvePoint& point) {
  Span span{.number = point.step >> span_bits_,
            .first = point,
            .last = point,
            .smallest = std::nullopt,
            .largest = std::nullopt,
            .not_finite = std::nullopt};
  if (std::isfinite(point.value)) {
    span.smallest = point;
    span.largest = point;
  } else {
    span.not_finite = point;
  }
  if (!spans_.empty() && spans_.back().number == span.number) {
    Join(span, &spans_.back());
    return;
  }
  spans_.push_back(span);
  while (spans_.size() > most_spans()) DoubleSpans();
}

void ReducedCurve::DoubleSpans() {
  ++span_bits_;
  size_t kept = 0;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const int64_t number = spans_[i].number >> 1;
    if (kept > 0 && spans_[kept - 1].number == number) {
      Join(spans_[i], &spans_[kept - 1]);
    } else {
      spans_[kept] = spans_[i];
      spans_[kept++].number = number;
    }
  }
  spans_.resize(kept);
}

void ReducedCurve::Join(const Span& later, Span* span) {
  span->last = later.last;
  if (later.smallest.has_value() &&
      (!span->smallest.has_value() || later.smallest->value < span->smallest->value)) {
    span->smallest = later.smallest;
  }
  if (later.largest.has_value() &&
      (!span->largest.has_value() || later.largest->value > span->largest->value)) {
    span->largest = later.largest;
  }
  if (!span->not_finite.has_value()) span->not_finite = later.not_finite;
}

std::vector<CurvePoint> ReducedCurve::Points() const {
  if (!is_reduced_) return points_;
  std::vector<CurvePoint> points;
  for (const Span& span : spans_) {
    std::vector<CurvePoint> own = {span.first, span.last};
    for (const std::optional<CurvePoint>& one : {span.smallest, span.largest, span.not_finite}) {
      if (one.has_value()) own.push_back(*one);
    }
    std::sort(own.begin(), own.end(),
              [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
    // A step has one point.
    own.erase(std::unique(own.begin(), own.end(),
                          [](const CurvePoint& a, const CurvePoint& b) { return a.step == b.step; }),
              own.end());
    points.insert(points.end(), own.begin(), own.end());
  }
  return points;
}

JobCurves::JobCurves(const CurveRange& range)
    : range_(range), images_per_second_(range), learning_rate_(range), loss_(range) {}

void JobCurves::VisitPoints(const v1::JobEvent& event, Visit visit) {
  if (!event.has_progress()) return;
  const v1::Progress& report = event.progress();
  CurvePoint point = {.step = report.step(),
                      .time = static_cast<double>(event.time().seconds()) + event.time().nanos() * 1e-9,
                      .value = report.images_per_second()};
  visit(images_per_second_, event.sequence(), point);
  point.value = report.learning_rate();
  visit(learning_rate_, event.sequence(), point);
  if (!report.has_training()) return;
  point.value = report.training().loss();
  visit(loss_, event.sequence(), point);
  for (const auto& [name, value] : report.training().metrics()) {
    point.value = value;
    auto metric = metrics_.find(name);
    if (metric == metrics_.end()) metric = metrics_.emplace(name, ReducedCurve(range_)).first;
    visit(metric->second, event.sequence(), point);
  }
}

void JobCurves::Add(const v1::JobEvent& event) {
  VisitPoints(event, [](ReducedCurve& curve, int64_t sequence, const CurvePoint& point) {
    curve.Add(sequence, point);
  });
}

bool JobCurves::needs_second_reading() const {
  return images_per_second_.needs_second_reading() || learning_rate_.needs_second_reading() ||
         loss_.needs_second_reading() ||
         std::any_of(metrics_.begin(), metrics_.end(),
                     [](const auto& metric) { return metric.second.needs_second_reading(); });
}

void JobCurves::BeginSecondReading() {
  images_per_second_.BeginSecondReading();
  learning_rate_.BeginSecondReading();
  loss_.BeginSecondReading();
  for (auto& [name, curve] : metrics_) curve.BeginSecondReading();
}

void JobCurves::AddAgain(const v1::JobEvent& event) {
  VisitPoints(event, [](ReducedCurve& curve, int64_t sequence, const CurvePoint& point) {
    curve.AddAgain(sequence, point);
  });
}

void JobCurves::Write(google::protobuf::RepeatedPtrField<v1::Curve>* curves) const {
  const auto write = [curves](const std::string& name, const ReducedCurve& reduced) {
    const std::vector<CurvePoint> points = reduced.Points();
    if (points.empty()) return;
    v1::Curve& curve = *curves->Add();
    curve.set_name(name);
    curve.set_total_points(reduced.total_points());
    curve.set_reduced(reduced.is_reduced());
    const int size = static_cast<int>(points.size());
    curve.mutable_steps()->Reserve(size);
    curve.mutable_times()->Reserve(size);
    curve.mutable_values()->Reserve(size);
    for (const CurvePoint& point : points) {
      curve.add_steps(point.step);
      curve.add_times(point.time);
      curve.add_values(point.value);
    }
  };
  std::map<std::string, const ReducedCurve*> all = {{"images_per_second", &images_per_second_},
                                                    {"learning_rate", &learning_rate_},
                                                    {"training/loss", &loss_}};
  for (const auto& [name, curve] : metrics_) all.emplace(absl::StrCat("training/", name), &curve);
  for (const auto& [name, curve] : all) write(name, *curve);
}

}  // namespace tandem
