// Cases of one learning-rate schedule.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/schedules/learning_rate.h"
#include "engine/schedules/schedule.h"
#include "tests/golden/runner.h"

namespace tandem {
namespace {

void ReadOneCycle(Attributes& attributes, v1::OneCycleSchedule* one_cycle) {
  one_cycle->set_max_lr(attributes.Number("max_lr", 0));
  one_cycle->set_total_steps(attributes.Whole("total_steps", 0));
  one_cycle->set_pct_start(attributes.Number("pct_start", 0.3));
  if (attributes.Text("anneal_strategy", "cos") == "linear") {
    one_cycle->set_anneal_strategy(v1::ANNEAL_STRATEGY_LINEAR);
  }
  one_cycle->set_div_factor(attributes.Number("div_factor", 25));
  one_cycle->set_final_div_factor(attributes.Number("final_div_factor", 1e4));
  one_cycle->set_three_phase(attributes.Flag("three_phase", false));
  // The momentum, which the case does not hold.
  for (const char* key : {"cycle_momentum", "base_momentum", "max_momentum"}) attributes.Ignore(key);
}

void ReadPlateau(Attributes& attributes, v1::PlateauSchedule* plateau) {
  plateau->set_mode(attributes.Text("mode", "min") == "max" ? v1::PLATEAU_MODE_MAX : v1::PLATEAU_MODE_MIN);
  plateau->set_factor(attributes.Number("factor", 0.1));
  plateau->set_patience(attributes.Whole("patience", 10));
  plateau->set_threshold(attributes.Number("threshold", 1e-4));
  plateau->set_threshold_mode(attributes.Text("threshold_mode", "rel") == "abs" ? v1::THRESHOLD_MODE_ABS
                                                                                : v1::THRESHOLD_MODE_REL);
  plateau->set_cooldown(attributes.Whole("cooldown", 0));
  plateau->set_min_lr(attributes.Number("min_lr", 0));
  plateau->set_eps(attributes.Number("eps", 1e-8));
}

void ReadWarmup(Attributes& attributes, double start_factor, v1::Warmup* warmup) {
  warmup->set_length(attributes.Whole("warmup_steps", 0));
  warmup->set_start_factor(attributes.Number("start_factor", start_factor));
}

absl::StatusOr<v1::Schedule> ReadSchedule(Attributes& attributes) {
  const std::string type = attributes.Text("type", "");
  v1::Schedule schedule;
  if (type == "constant") {
    schedule.mutable_constant();
  } else if (type == "step") {
    schedule.mutable_piecewise()->set_drop_period(attributes.Whole("step_size", 0));
    schedule.mutable_piecewise()->set_drop_factor(attributes.Number("gamma", 0.1));
  } else if (type == "piecewise_constant") {
    for (const double boundary : attributes.Numbers("boundaries")) {
      schedule.mutable_piecewise_constant()->add_boundaries(std::llround(boundary));
    }
    for (const double factor : attributes.Numbers("factors")) {
      schedule.mutable_piecewise_constant()->add_factors(factor);
    }
  } else if (type == "multistep") {
    for (const double milestone : attributes.Numbers("milestones")) {
      schedule.mutable_multistep()->add_milestones(std::llround(milestone));
    }
    schedule.mutable_multistep()->set_gamma(attributes.Number("gamma", 0.1));
  } else if (type == "exponential") {
    schedule.mutable_exponential()->set_gamma(attributes.Number("gamma", 0));
  } else if (type == "polynomial") {
    schedule.mutable_polynomial()->set_total_iters(attributes.Whole("total_iters", 5));
    schedule.mutable_polynomial()->set_power(attributes.Number("power", 1));
  } else if (type == "cosine" || type == "linear_warmup_cosine") {
    schedule.mutable_cosine()->set_t_max(attributes.Whole("T_max", 0));
    schedule.mutable_cosine()->set_eta_min(attributes.Number("eta_min", 0));
    if (type != "cosine") ReadWarmup(attributes, 1.0 / 3, schedule.mutable_warmup());
  } else if (type == "cosine_warm_restarts") {
    schedule.mutable_cosine_warm_restarts()->set_t_0(attributes.Whole("T_0", 0));
    schedule.mutable_cosine_warm_restarts()->set_t_mult(attributes.Whole("T_mult", 1));
    schedule.mutable_cosine_warm_restarts()->set_eta_min(attributes.Number("eta_min", 0));
  } else if (type == "one_cycle") {
    ReadOneCycle(attributes, schedule.mutable_one_cycle());
  } else if (type == "inverse_sqrt") {
    schedule.mutable_inverse_sqrt()->set_warmup_steps(attributes.Whole("warmup_steps", 0));
  } else if (type == "reduce_on_plateau") {
    ReadPlateau(attributes, schedule.mutable_plateau());
  } else {
    return absl::UnimplementedError(absl::StrCat("schedule ", type, " is not offered yet"));
  }
  return schedule;
}

}  // namespace

absl::Status RunScheduleCase(const GoldenCase& golden, GoldenReport& report) {
  TANDEM_ASSIGN_OR_RETURN(const Tensor expected, golden.Get("lr"));
  Attributes attributes(golden.attrs);
  TANDEM_ASSIGN_OR_RETURN(v1::Schedule schedule, ReadSchedule(attributes));
  const double learning_rate = attributes.Number("lr", 0);
  const std::vector<double> measures = attributes.Numbers("metric");
  TANDEM_RETURN_IF_ERROR(attributes.Finish());
  FillScheduleDefaults(&schedule);
  TANDEM_RETURN_IF_ERROR(CheckSchedule(schedule));

  // With epochs of one step it does not matter which of both t counts.
  const int64_t steps = expected.elements();
  LearningRate rate({.schedule = schedule, .learning_rate = learning_rate, .steps = steps});
  if (rate.watches() && static_cast<int64_t>(measures.size()) < steps - 1) {
    return absl::InvalidArgumentError("the case has fewer measures than epochs");
  }
  const bool smaller_is_better = schedule.plateau().mode() != v1::PLATEAU_MODE_MAX;
  std::vector<double> rates;
  for (int64_t t = 0; t < steps; ++t) {
    rates.push_back(rate.Rate(t));
    if (t < static_cast<int64_t>(measures.size())) rate.EndEpoch(t + 1, measures[t], smaller_is_better);
  }
  report.Compare("lr", Tensor::Of<double>({steps}, rates), expected);
  return absl::OkStatus();
}

}  // namespace tandem
