#include "engine/schedules/schedule.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

void CheckLength(absl::string_view field, int64_t length, bool required, FieldViolations& violations) {
  if (length > 0 && length <= kMaxLength) return;
  if (length == 0) {
    if (required) violations.Add(field, "is 0 or left out; it must be at least 1");
  } else {
    violations.Add(field, absl::StrCat("is ", length, "; it must be from 1 to ", kMaxLength));
  }
}

void CheckCount(absl::string_view field, int64_t count, FieldViolations& violations) {
  if (count >= 0 && count <= kMaxLength) return;
  violations.Add(field, absl::StrCat("is ", count, "; it must be from 0 to ", kMaxLength));
}

// Checks that there are times and that they rise.
template <typename Times>
void CheckTimes(absl::string_view field, const Times& times, FieldViolations& violations) {
  if (times.empty()) violations.Add(field, "is required; give at least one");
  int64_t last = 0;
  for (int i = 0; i < times.size(); ++i) {
    if (times[i] <= last || times[i] > kMaxLength) {
      violations.Add(absl::StrCat(field, "[", i, "]"),
                     absl::StrCat("is ", times[i], "; it must be from ", last + 1, " to ", kMaxLength));
      return;
    }
    last = times[i];
  }
}

void CheckPiecewiseConstant(const v1::PiecewiseConstantSchedule& constant, FieldViolations& violations) {
  CheckTimes("piecewise_constant.boundaries", constant.boundaries(), violations);
  if (constant.factors_size() != constant.boundaries_size() + 1) {
    violations.Add("piecewise_constant.factors",
                   absl::StrCat("has ", constant.factors_size(), " numbers; ", constant.boundaries_size(),
                                " boundaries need ", constant.boundaries_size() + 1));
  }
  for (int i = 0; i < constant.factors_size(); ++i) {
    CheckAtLeastZero(absl::StrCat("piecewise_constant.factors[", i, "]"), constant.factors(i), violations);
  }
}

void CheckOneCycle(const v1::OneCycleSchedule& one_cycle, FieldViolations& violations) {
  if (one_cycle.has_max_lr()) CheckAboveZero("one_cycle.max_lr", one_cycle.max_lr(), violations);
  CheckLength("one_cycle.total_steps", one_cycle.total_steps(), false, violations);
  if (one_cycle.total_steps() == 1) violations.Add("one_cycle.total_steps", "is 1; it must be at least 2");
  CheckZeroToOne("one_cycle.pct_start", one_cycle.pct_start(), violations);
  if (one_cycle.three_phase() && one_cycle.pct_start() > 0.5 && one_cycle.pct_start() <= 1) {
    violations.Add("one_cycle.pct_start",
                   absl::StrCat("is ", one_cycle.pct_start(), "; with three phases it must be at most 0.5"));
  }
  CheckAboveZero("one_cycle.div_factor", one_cycle.div_factor(), violations);
  CheckAboveZero("one_cycle.final_div_factor", one_cycle.final_div_factor(), violations);
  if (!v1::AnnealStrategy_IsValid(one_cycle.anneal_strategy())) {
    violations.Add("one_cycle.anneal_strategy", "is not known; give cos or linear");
  }
}

void CheckPlateau(const v1::PlateauSchedule& plateau, FieldViolations& violations) {
  if (!(plateau.factor() > 0 && plateau.factor() < 1)) {
    violations.Add("plateau.factor",
                   absl::StrCat("is ", plateau.factor(), "; it must be above 0 and below 1"));
  }
  CheckCount("plateau.patience", plateau.patience(), violations);
  CheckAtLeastZero("plateau.threshold", plateau.threshold(), violations);
  CheckCount("plateau.cooldown", plateau.cooldown(), violations);
  CheckAtLeastZero("plateau.min_lr", plateau.min_lr(), violations);
  CheckAtLeastZero("plateau.eps", plateau.eps(), violations);
  if (!v1::PlateauMode_IsValid(plateau.mode())) {
    violations.Add("plateau.mode", "is not known; give min or max");
  }
  if (!v1::ThresholdMode_IsValid(plateau.threshold_mode())) {
    violations.Add("plateau.threshold_mode", "is not known; give rel or abs");
  }
}

void CheckKind(const v1::Schedule& schedule, FieldViolations& violations) {
  switch (schedule.kind_case()) {
    case v1::Schedule::kPiecewise:
      CheckAboveZero("piecewise.drop_factor", schedule.piecewise().drop_factor(), violations);
      CheckLength("piecewise.drop_period", schedule.piecewise().drop_period(), true, violations);
      break;
    case v1::Schedule::kPiecewiseConstant:
      CheckPiecewiseConstant(schedule.piecewise_constant(), violations);
      break;
    case v1::Schedule::kMultistep:
      CheckTimes("multistep.milestones", schedule.multistep().milestones(), violations);
      CheckAboveZero("multistep.gamma", schedule.multistep().gamma(), violations);
      break;
    case v1::Schedule::kExponential:
      if (schedule.exponential().has_gamma()) {
        CheckAboveZero("exponential.gamma", schedule.exponential().gamma(), violations);
      } else {
        violations.Add("exponential.gamma", "is required");
      }
      break;
    case v1::Schedule::kPolynomial:
      CheckLength("polynomial.total_iters", schedule.polynomial().total_iters(), false, violations);
      CheckAboveZero("polynomial.power", schedule.polynomial().power(), violations);
      break;
    case v1::Schedule::kCosine:
      CheckLength("cosine.t_max", schedule.cosine().t_max(), false, violations);
      CheckAtLeastZero("cosine.eta_min", schedule.cosine().eta_min(), violations);
      break;
    case v1::Schedule::kCosineWarmRestarts:
      CheckLength("cosine_warm_restarts.t_0", schedule.cosine_warm_restarts().t_0(), true, violations);
      CheckLength("cosine_warm_restarts.t_mult", schedule.cosine_warm_restarts().t_mult(), true, violations);
      CheckAtLeastZero("cosine_warm_restarts.eta_min", schedule.cosine_warm_restarts().eta_min(), violations);
      break;
    case v1::Schedule::kOneCycle:
      CheckOneCycle(schedule.one_cycle(), violations);
      break;
    case v1::Schedule::kInverseSqrt:
      CheckLength("inverse_sqrt.warmup_steps", schedule.inverse_sqrt().warmup_steps(), true, violations);
      break;
    case v1::Schedule::kPlateau:
      CheckPlateau(schedule.plateau(), violations);
      break;
    case v1::Schedule::kConstant:
    case v1::Schedule::KIND_NOT_SET:
      break;
  }
}

void FillOneCycleDefaults(v1::OneCycleSchedule* one_cycle) {
  if (!one_cycle->has_pct_start()) one_cycle->set_pct_start(0.3);
  if (one_cycle->anneal_strategy() == v1::ANNEAL_STRATEGY_UNSPECIFIED) {
    one_cycle->set_anneal_strategy(v1::ANNEAL_STRATEGY_COS);
  }
  if (!one_cycle->has_div_factor()) one_cycle->set_div_factor(25);
  if (!one_cycle->has_final_div_factor()) one_cycle->set_final_div_factor(1e4);
}

void FillPlateauDefaults(v1::PlateauSchedule* plateau) {
  if (!plateau->has_factor()) plateau->set_factor(0.1);
  if (!plateau->has_patience()) plateau->set_patience(10);
  if (!plateau->has_threshold()) plateau->set_threshold(1e-4);
  if (plateau->threshold_mode() == v1::THRESHOLD_MODE_UNSPECIFIED) {
    plateau->set_threshold_mode(v1::THRESHOLD_MODE_REL);
  }
  if (!plateau->has_eps()) plateau->set_eps(1e-8);
}

}  // namespace

void FillScheduleDefaults(v1::Schedule* schedule) {
  if (schedule->has_warmup()) {
    v1::Warmup* warmup = schedule->mutable_warmup();
    if (!warmup->has_start_factor()) warmup->set_start_factor(1.0 / 3);
  }
  if (schedule->has_piecewise()) {
    v1::PiecewiseSchedule* piecewise = schedule->mutable_piecewise();
    if (!piecewise->has_drop_factor()) piecewise->set_drop_factor(0.1);
    if (piecewise->drop_period() == 0) piecewise->set_drop_period(10);
  }
  if (schedule->has_multistep() && !schedule->multistep().has_gamma()) {
    schedule->mutable_multistep()->set_gamma(0.1);
  }
  if (schedule->has_polynomial() && !schedule->polynomial().has_power()) {
    schedule->mutable_polynomial()->set_power(1);
  }
  if (schedule->has_cosine_warm_restarts() && schedule->cosine_warm_restarts().t_mult() == 0) {
    schedule->mutable_cosine_warm_restarts()->set_t_mult(1);
  }
  if (schedule->has_one_cycle()) FillOneCycleDefaults(schedule->mutable_one_cycle());
  if (schedule->has_plateau()) FillPlateauDefaults(schedule->mutable_plateau());
  if (schedule->kind_case() == v1::Schedule::KIND_NOT_SET) schedule->mutable_constant();
}

absl::Status CheckSchedule(const v1::Schedule& schedule) {
  FieldViolations violations;
  CheckKind(schedule, violations);
  if (!v1::ScheduleUnit_IsValid(schedule.unit())) {
    violations.Add("unit", "is not known; give steps or epochs");
  }
  if (schedule.has_warmup()) {
    CheckLength("warmup.length", schedule.warmup().length(), true, violations);
    CheckZeroToOne("warmup.start_factor", schedule.warmup().start_factor(), violations);
    if (!v1::ScheduleUnit_IsValid(schedule.warmup().unit())) {
      violations.Add("warmup.unit", "is not known; give steps or epochs");
    }
  }
  return violations.ToStatus();
}

}  // namespace tandem
