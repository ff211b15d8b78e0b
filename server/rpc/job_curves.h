#ifndef TANDEM_SERVER_RPC_JOB_CURVES_H_
#define TANDEM_SERVER_RPC_JOB_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job_service.pb.h"

namespace tandem {

// A point of a curve.
struct CurvePoint {
  int64_t step = 0;
  // In seconds since 1970.
  double time = 0;
  double value = 0;
};

// The steps that curves cover, and their most points.
struct CurveRange {
  int64_t first_step = 0;
  // At least first_step.
  int64_t last_step = INT64_MAX;
  // At least 5.
  int max_points = 4000;
};

// A curve of a job's log with at most CurveRange::max_points points. Its memory depends on max_points alone,
// except for 16 bytes for some rewinds. A rewind is a point whose step is not above the previous point's
// step, as after a restart from a checkpoint. It replaces all earlier points of the same step and of later
// steps. Not thread-safe.
//
// If the curve has too many points, it is reduced to spans of steps. A span keeps its first, smallest,
// largest and last point, and its first point that is not finite. All spans have the same length, a power of
// two, which doubles when there are too many spans. A rewind cannot be applied to a span. So after a rewind
// of a reduced curve, `needs_second_reading` is true, and the caller must read the log again.
class ReducedCurve {
 public:
  explicit ReducedCurve(const CurveRange& range) : range_(range) {}

  // In the first reading, for each point in the order of the log. `sequence` is the event's number.
  void Add(int64_t sequence, const CurvePoint& point);

  bool needs_second_reading() const { return needs_second_reading_; }
  // Before the second reading. Forgets the points.
  void BeginSecondReading();
  // In the second reading, for each point that the first reading had, in the same order.
  void AddAgain(int64_t sequence, const CurvePoint& point);

  // The points in the order of steps.
  std::vector<CurvePoint> Points() const;
  // The number of points in the range before reduction.
  int64_t total_points() const { return total_points_; }
  bool is_reduced() const { return is_reduced_; }

 private:
  // From `sequence` on, points of these steps are replaced.
  struct Rewind {
    int64_t sequence = 0;
    int64_t step = 0;
  };
  struct Span {
    int64_t number = 0;
    CurvePoint first;
    CurvePoint last;
    std::optional<CurvePoint> smallest;
    std::optional<CurvePoint> largest;
    std::optional<CurvePoint> not_finite;
  };

  bool Covers(int64_t step) const { return step >= range_.first_step && step <= range_.last_step; }
  void Keep(const CurvePoint& point);
  void KeepInSpan(const CurvePoint& point);
  void DoubleSpans();
  static void Join(const Span& later, Span* span);
  size_t most_spans() const { return static_cast<size_t>(range_.max_points) / 5; }

  const CurveRange range_;
  // Of the newest point, whether the range covers the point or not.
  std::optional<int64_t> last_step_;
  // Sequence numbers and steps ascend: a rewind replaces all earlier ones of later steps.
  std::vector<Rewind> rewinds_;
  // In the second reading: the first rewind that is still to come.
  size_t next_rewind_ = 0;
  bool needs_second_reading_ = false;

  bool is_reduced_ = false;
  int64_t total_points_ = 0;
  // While the curve is not reduced.
  std::vector<CurvePoint> points_;
  // While the curve is reduced: span i has the steps from i << span_bits_ on.
  std::vector<Span> spans_;
  int span_bits_ = 0;
};

// All curves of a job's reports. Not thread-safe.
class JobCurves {
 public:
  explicit JobCurves(const CurveRange& range);

  // In the first reading, for each report in the order of the log. Other events have no effect.
  void Add(const v1::JobEvent& event);
  bool needs_second_reading() const;
  void BeginSecondReading();
  void AddAgain(const v1::JobEvent& event);

  // How many curves there may be.
  size_t size() const { return 3 + metrics_.size(); }
  // Adds the curves that have points, in the order of their names.
  void Write(google::protobuf::RepeatedPtrField<v1::Curve>* curves) const;

 private:
  using Visit = absl::FunctionRef<void(ReducedCurve&, int64_t sequence, const CurvePoint&)>;
  void VisitPoints(const v1::JobEvent& event, Visit visit);

  const CurveRange range_;
  ReducedCurve images_per_second_;
  ReducedCurve learning_rate_;
  ReducedCurve loss_;
  // By the metric's name.
  std::map<std::string, ReducedCurve, std::less<>> metrics_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_RPC_JOB_CURVES_H_
