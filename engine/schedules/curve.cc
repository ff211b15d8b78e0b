#include "engine/schedules/curve.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Anneals from `from` to `to` while `share` rises from 0 to 1.
double Anneal(double from, double to, double share, bool linear) {
  return linear ? from + (to - from) * share : to + (from - to) * (1 + std::cos(kPi * share)) / 2;
}

// Returns the curve rate factors[number of boundaries up to t].
Curve Steps(std::vector<int64_t> boundaries, std::vector<double> factors, double rate) {
  return [=](int64_t t) {
    return rate * factors[std::upper_bound(boundaries.begin(), boundaries.end(), t) - boundaries.begin()];
  };
}

Curve Multistep(const v1::MultistepSchedule& multistep, double rate) {
  std::vector<double> factors = {1};
  for (int i = 0; i < multistep.milestones_size(); ++i) {
    factors.push_back(std::pow(multistep.gamma(), i + 1));
  }
  return Steps({multistep.milestones().begin(), multistep.milestones().end()}, std::move(factors), rate);
}

Curve CosineWarmRestarts(const v1::CosineWarmRestartsSchedule& cosine, double rate) {
  return [first = static_cast<double>(cosine.t_0()), growth = static_cast<double>(cosine.t_mult()),
          least = cosine.eta_min(), rate](int64_t t) {
    double cycle = first;
    double place = static_cast<double>(t);
    if (growth == 1) place = std::fmod(place, cycle);
    while (place >= cycle) {
      place -= cycle;
      cycle *= growth;
    }
    return Anneal(rate, least, place / cycle, false);
  };
}

Curve OneCycle(const v1::OneCycleSchedule& one_cycle, double rate, double scale, int64_t length) {
  struct Phase {
    double end;
    double from;
    double to;
  };
  const double most = one_cycle.has_max_lr() ? scale * one_cycle.max_lr() : rate;
  const double first = most / one_cycle.div_factor();
  const double least = first / one_cycle.final_div_factor();
  const double steps = static_cast<double>(one_cycle.total_steps() > 0 ? one_cycle.total_steps() : length);
  std::vector<Phase> phases = {{one_cycle.pct_start() * steps - 1, first, most}};
  if (one_cycle.three_phase()) {
    phases.push_back({2 * one_cycle.pct_start() * steps - 2, most, first});
    phases.push_back({steps - 1, first, least});
  } else {
    phases.push_back({steps - 1, most, least});
  }
  const bool linear = one_cycle.anneal_strategy() == v1::ANNEAL_STRATEGY_LINEAR;
  return [=](int64_t t) {
    const double place = static_cast<double>(t);
    double start = 0;
    for (const Phase& phase : phases) {
      if (place <= phase.end) {
        const double share = phase.end > start ? (place - start) / (phase.end - start) : 1;
        return Anneal(phase.from, phase.to, share, linear);
      }
      start = phase.end;
    }
    return phases.back().to;
  };
}

}  // namespace

Curve MakeCurve(const v1::Schedule& schedule, double learning_rate, double scale, int64_t length) {
  const double rate = scale * learning_rate;
  switch (schedule.kind_case()) {
    case v1::Schedule::kPiecewise:
      return [factor = schedule.piecewise().drop_factor(), period = schedule.piecewise().drop_period(),
              rate](int64_t t) { return rate * std::pow(factor, static_cast<double>(t / period)); };
    case v1::Schedule::kPiecewiseConstant: {
      const v1::PiecewiseConstantSchedule& constant = schedule.piecewise_constant();
      return Steps({constant.boundaries().begin(), constant.boundaries().end()},
                   {constant.factors().begin(), constant.factors().end()}, rate);
    }
    case v1::Schedule::kMultistep:
      return Multistep(schedule.multistep(), rate);
    case v1::Schedule::kExponential:
      return [gamma = schedule.exponential().gamma(), rate](int64_t t) {
        return rate * std::pow(gamma, static_cast<double>(t));
      };
    case v1::Schedule::kPolynomial: {
      const int64_t given = schedule.polynomial().total_iters();
      return [total = static_cast<double>(given > 0 ? given : length), power = schedule.polynomial().power(),
              rate](int64_t t) {
        return rate * std::pow(1 - std::min(static_cast<double>(t), total) / total, power);
      };
    }
    case v1::Schedule::kCosine: {
      const int64_t given = schedule.cosine().t_max();
      return [half = static_cast<double>(given > 0 ? given : length), least = schedule.cosine().eta_min(),
              rate](int64_t t) { return Anneal(rate, least, static_cast<double>(t) / half, false); };
    }
    case v1::Schedule::kCosineWarmRestarts:
      return CosineWarmRestarts(schedule.cosine_warm_restarts(), rate);
    case v1::Schedule::kOneCycle:
      return OneCycle(schedule.one_cycle(), rate, scale, length);
    case v1::Schedule::kInverseSqrt:
      return [peak = static_cast<double>(schedule.inverse_sqrt().warmup_steps()), rate](int64_t t) {
        const double place = static_cast<double>(t) + 1;
        return rate * std::min(place / peak, std::sqrt(peak / place));
      };
    case v1::Schedule::kConstant:
    case v1::Schedule::kPlateau:
    case v1::Schedule::KIND_NOT_SET:
      break;
  }
  return [rate](int64_t) { return rate; };
}

}  // namespace tandem
