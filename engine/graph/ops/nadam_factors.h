#ifndef TANDEM_ENGINE_GRAPH_OPS_NADAM_FACTORS_H_
#define TANDEM_ENGINE_GRAPH_OPS_NADAM_FACTORS_H_

#include <cmath>

// Backends on the host and kernels on GPUs share these functions.
#ifdef __CUDACC__
#define TANDEM_HOST_AND_DEVICE __host__ __device__
#else
#define TANDEM_HOST_AND_DEVICE
#endif

namespace tandem {

// The factors of m and of g in the formula of NadamOp.
struct NadamFactors {
  double moment = 0;    // mu_t+1 / (1 - M_t+1)
  double gradient = 0;  // (1 - mu_t) / (1 - M_t)
};

// Returns mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2).
TANDEM_HOST_AND_DEVICE inline double NadamMu(double beta1, double momentum_decay, double t) {
  return beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay));
}

// Returns M_t, the product of mu_1 to mu_t, in constant time. With q = 0.96^momentum_decay,
//
//   log(M_t / beta1^t) = sum over i from 1 to t of log(1 - q^i / 2)
//                      = -sum over k from 1 of 2^-k / k (q^k + q^2k + ... + q^tk)
//                      = -sum over k from 1 of 2^-k / k q^k (1 - q^tk) / (1 - q^k).
TANDEM_HOST_AND_DEVICE inline double NadamProduct(double beta1, double momentum_decay, double t) {
  // The first term that is left out is below 2^-54 of the sum.
  constexpr int kTerms = 48;
  const double log_q = momentum_decay * std::log(0.96);
  // q^k - 1 and q^tk - 1. Near 0 they keep their precision from step to step, because no step cancels.
  const double less_of_one = std::expm1(log_q);
  const double less_of_all = std::expm1(t * log_q);
  double less = 0;
  double all = 0;
  double half_power = 1;
  double sum = 0;
  for (int k = 1; k <= kTerms; ++k) {
    less += less_of_one * (1 + less);
    all += less_of_all * (1 + all);
    half_power *= 0.5;
    sum += half_power / k * (1 + less) * (less == 0 ? t : all / less);
  }
  return std::pow(beta1, t) * std::exp(-sum);
}

TANDEM_HOST_AND_DEVICE inline NadamFactors NadamFactorsAt(double beta1, double momentum_decay, double t) {
  const double mu = NadamMu(beta1, momentum_decay, t);
  const double next_mu = NadamMu(beta1, momentum_decay, t + 1);
  const double product = NadamProduct(beta1, momentum_decay, t);
  return {next_mu / (1 - product * next_mu), (1 - mu) / (1 - product)};
}

}  // namespace tandem

#undef TANDEM_HOST_AND_DEVICE

#endif  // TANDEM_ENGINE_GRAPH_OPS_NADAM_FACTORS_H_
