// Compressed reductions, compared with the algorithm of the paper in plain loops.

#include "engine/training/gradient_reduction.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backend/device.h"
#include "engine/backend/thread_communicator.h"
#include "engine/backends/device_factory.h"
#include "engine/base/philox.h"
#include "engine/graph/ops/orthonormal_sign.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> numbers = std::vector<double>(rows * columns);

  double& at(int64_t row, int64_t column) { return numbers[row * columns + column]; }
  double at(int64_t row, int64_t column) const { return numbers[row * columns + column]; }
};

Matrix Turned(const Matrix& a) {
  Matrix turned = {a.columns, a.rows};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) turned.at(j, i) = a.at(i, j);
  }
  return turned;
}

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix product = {a.rows, b.columns};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < a.columns; ++k) product.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return product;
}

Matrix Sum(const Matrix& a, double factor, const Matrix& b) {
  Matrix sum = a;
  for (size_t i = 0; i < sum.numbers.size(); ++i) sum.numbers[i] += factor * b.numbers[i];
  return sum;
}

// Makes the columns orthonormal. Takes random signs if all of them are zero.
Matrix Orthonormal(Matrix a) {
  double length = 0;
  for (const double number : a.numbers) length += std::abs(number);
  for (int64_t k = 0; k < a.columns; ++k) {
    for (int64_t i = 0; i < a.rows && length == 0; ++i) a.at(i, k) = OrthonormalSign(i, k);
    for (int64_t j = 0; j < k; ++j) {
      double part = 0;
      for (int64_t i = 0; i < a.rows; ++i) part += a.at(i, k) * a.at(i, j);
      for (int64_t i = 0; i < a.rows; ++i) a.at(i, k) -= part * a.at(i, j);
    }
    double square = 0;
    for (int64_t i = 0; i < a.rows; ++i) square += a.at(i, k) * a.at(i, k);
    for (int64_t i = 0; i < a.rows; ++i) a.at(i, k) /= std::sqrt(square);
  }
  return a;
}

// The gradient of a step on a rank. The ranks' gradients have much in common, as those of batches do.
Matrix GradientOf(int64_t step, int rank, int64_t rows, int64_t columns) {
  Matrix gradient = {rows, columns};
  RandomStream common(1, RandomPurpose::kInitializer, step, 0);
  RandomStream own(1, RandomPurpose::kInitializer, step, rank + 1);
  for (double& number : gradient.numbers) number = common.NextUniform() + 0.2 * own.NextUniform() - 0.4;
  return gradient;
}

// A rank's graph: the reduction of a convolution's gradient [6, 4, 3, 3], of a tall matrix [40, 12], of a
// vector and of a small matrix.
const std::vector<Shape>& Shapes() {
  static const auto& shapes = *new std::vector<Shape>{{6, 4, 3, 3}, {40, 12}, {5}, {4, 4}};
  return shapes;
}

struct Ranks {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Variables>> variables;
  std::vector<std::unique_ptr<Executable>> executables;
  std::vector<std::unique_ptr<Communicator>> communicators;
};

// `shares` has a share for each rank. `scales` says whether the reduction scales gradients by it.
Ranks MakeRanks(const std::string& kind, const std::vector<double>& shares, bool scales,
                int64_t bucket_bytes) {
  Ranks ranks;
  ranks.communicators = CreateThreadCommunicators(static_cast<int>(shares.size()));
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    absl::StatusOr<std::unique_ptr<Device>> device =
        OpenDevice(absl::StrCat("devices/", kind, ":", rank), {.threads = 1});
    EXPECT_TRUE(device.ok()) << device.status();
    Graph graph;
    std::vector<ValueId> parameters, gradients;
    for (const Shape& shape : Shapes()) {
      const DType dtype = (*device)->dtype();
      parameters.push_back(graph.AddVariable(absl::StrCat("parameter_", parameters.size()),
                                             VariableKind::kParameter, dtype, Shape(shape)));
      gradients.push_back(graph.AddInput(absl::StrCat("gradient_", gradients.size()), dtype, Shape(shape)));
    }
    v1::AllReduce settings;
    settings.set_first_bucket_bytes(1);
    settings.set_bucket_bytes(bucket_bytes);
    settings.mutable_compression()->set_rank(2);
    GradientReduction reduction(&graph, scales ? shares[rank] : 1, parameters, settings);
    for (size_t i = parameters.size(); i > 0; --i) {
      const absl::Status status = reduction.Add(i - 1, gradients[i - 1]);
      EXPECT_TRUE(status.ok()) << status;
    }
    for (const ValueId reduced : reduction.reduced()) graph.MarkOutput(reduced);
    ranks.variables.push_back((*device)->CreateVariables());
    absl::StatusOr<std::unique_ptr<Executable>> executable =
        (*device)->Compile(graph, ranks.variables.back().get());
    EXPECT_TRUE(executable.ok()) << executable.status();
    ranks.devices.push_back(*std::move(device));
    ranks.executables.push_back(*std::move(executable));
  }
  return ranks;
}

Matrix MatrixOf(const Tensor& tensor, int64_t rows) {
  const Tensor wide = tensor.CastTo(DType::kFloat64);
  const absl::Span<const double> numbers = wide.data<double>();
  return {rows, tensor.elements() / rows, {numbers.begin(), numbers.end()}};
}

// Runs a step on all ranks. `inputs` has the gradients of each rank.
void RunStep(const Ranks& ranks, const std::vector<std::vector<Tensor>>& inputs) {
  std::vector<absl::Status> statuses(inputs.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<const void*> data;
      for (const Tensor& tensor : inputs[rank]) data.push_back(tensor.raw_data());
      statuses[rank] = ranks.executables[rank]->Run(data, ranks.communicators[rank].get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) ASSERT_TRUE(status.ok()) << status;
}

void ExpectNear(const Matrix& actual, const Matrix& expected, double tolerance) {
  ASSERT_EQ(actual.numbers.size(), expected.numbers.size());
  for (size_t i = 0; i < actual.numbers.size(); ++i) {
    ASSERT_TRUE(std::abs(actual.numbers[i] - expected.numbers[i]) <= tolerance)
        << "element " << i << " is " << actual.numbers[i] << ", not " << expected.numbers[i];
  }
}

// The state of the paper's algorithm for a matrix.
struct Paper {
  std::vector<Matrix> errors;  // By rank.
  Matrix start;

  // Returns the sum of the gradients of all ranks by their shares, as far as it is sent.
  Matrix Step(const std::vector<Matrix>& gradients, const std::vector<double>& shares) {
    std::vector<Matrix> owed;
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      owed.push_back(Sum(errors[rank], shares[rank], gradients[rank]));
    }
    Matrix p = {owed[0].rows, start.columns};
    for (const Matrix& own : owed) p = Sum(p, 1, Product(own, start));
    p = Orthonormal(std::move(p));
    start = {owed[0].columns, start.columns};
    for (const Matrix& own : owed) start = Sum(start, 1, Product(Turned(own), p));
    const Matrix sent = Product(p, Turned(start));
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      errors[rank] = Sum(owed[rank], -1, Product(p, Product(Turned(p), owed[rank])));
    }
    return sent;
  }
};

void ExpectThePapersSteps(const std::string& kind, bool scales, int64_t bucket_bytes, double tolerance) {
  SCOPED_TRACE(absl::StrCat(kind, scales ? " scales" : "", " ", bucket_bytes));
  const std::vector<double> shares = {0.5, 0.3, 0.2};
  const Ranks ranks = MakeRanks(kind, shares, scales, bucket_bytes);
  const DType dtype = ranks.devices[0]->dtype();
  // The second matrix is turned, because it has more rows than columns.
  std::vector<Paper> papers = {{{3, Matrix{6, 36}}, Matrix{36, 2}}, {{3, Matrix{12, 40}}, Matrix{40, 2}}};
  for (int64_t step = 0; step < 5; ++step) {
    std::vector<std::vector<Matrix>> gradients(Shapes().size());  // By parameter, then by rank.
    std::vector<std::vector<Tensor>> inputs(shares.size());
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      for (size_t i = 0; i < Shapes().size(); ++i) {
        const Shape& shape = Shapes()[i];
        const int64_t rows = shape[0];
        gradients[i].push_back(GradientOf(10 * step + static_cast<int64_t>(i), static_cast<int>(rank), rows,
                                          shape.elements() / rows));
        // Nothing was learnt in the third step.
        if (step == 2) gradients[i].back() = {rows, shape.elements() / rows};
        Matrix given = gradients[i].back();
        for (double& number : given.numbers) number *= scales ? 1 : shares[rank];
        inputs[rank].push_back(Tensor::Of<double>(shape, given.numbers).CastTo(dtype));
      }
    }
    RunStep(ranks, inputs);

    for (size_t i = 0; i < Shapes().size(); ++i) {
      SCOPED_TRACE(absl::StrCat("step ", step, " parameter ", i));
      const int64_t rows = Shapes()[i][0];
      Matrix expected = {rows, Shapes()[i].elements() / rows};
      if (i < papers.size()) {
        std::vector<Matrix> turned;
        for (const Matrix& one : gradients[i]) turned.push_back(i == 1 ? Turned(one) : one);
        expected = papers[i].Step(turned, shares);
        if (i == 1) expected = Turned(expected);
      } else {
        for (size_t rank = 0; rank < shares.size(); ++rank) {
          expected = Sum(expected, shares[rank], gradients[i][rank]);
        }
      }
      const absl::StatusOr<Tensor> first = ranks.executables[0]->Output(static_cast<int>(i));
      ASSERT_TRUE(first.ok()) << first.status();
      ASSERT_EQ(first->shape(), Shapes()[i]);
      ExpectNear(MatrixOf(*first, rows), expected, tolerance);
      for (size_t rank = 1; rank < shares.size(); ++rank) {
        const absl::StatusOr<Tensor> other = ranks.executables[rank]->Output(static_cast<int>(i));
        ASSERT_TRUE(other.ok()) << other.status();
        EXPECT_EQ(MatrixOf(*other, rows).numbers, MatrixOf(*first, rows).numbers);
      }
    }
    for (size_t rank = 0; rank < shares.size(); ++rank) {
      const absl::StatusOr<Tensor> error = ranks.variables[rank]->Read("compression/error/parameter_0");
      ASSERT_TRUE(error.ok()) << error.status();
      Matrix own = MatrixOf(*error, 6);
      // The error is kept before the scale.
      for (double& number : own.numbers) number *= scales ? shares[rank] : 1;
      ExpectNear(own, papers[0].errors[rank], tolerance);
    }
  }
}

TEST(GradientReductionTest, CompressionTakesThePapersSteps) {
  for (const bool scales : {false, true}) {
    for (const int64_t bucket_bytes : {int64_t{1}, int64_t{1} << 20}) {
      ExpectThePapersSteps("reference", scales, bucket_bytes, 1e-10);
      ExpectThePapersSteps("cpu", scales, bucket_bytes, 1e-4);
    }
  }
}

// A difference between the replicas' gradients cancels in their sum. It must not pile up in their errors: a
// replica that skips a step would leave the others with the whole pile.
TEST(GradientReductionTest, ErrorsStayBoundedIfReplicasDiffer) {
  const Ranks ranks = MakeRanks("cpu", {0.5, 0.5}, /*scales=*/false, 1 << 20);
  std::vector<std::vector<Tensor>> inputs(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const Shape& shape : Shapes()) {
      const int64_t rows = shape[0];
      const int64_t columns = shape.elements() / rows;
      const Matrix common = GradientOf(0, 0, rows, columns);
      const Matrix difference = GradientOf(1, 0, rows, columns);
      inputs[rank].push_back(
          Tensor::Of<double>(shape, Sum(common, rank == 0 ? 0.3 : -0.3, difference).numbers)
              .CastTo(DType::kFloat32));
    }
  }
  const Matrix gradient = MatrixOf(inputs[0][0], 6);
  for (int step = 0; step < 300; ++step) RunStep(ranks, inputs);
  const absl::StatusOr<Tensor> error = ranks.variables[0]->Read("compression/error/parameter_0");
  ASSERT_TRUE(error.ok()) << error.status();
  const auto length = [](const Matrix& matrix) {
    double square = 0;
    for (const double number : matrix.numbers) square += number * number;
    return std::sqrt(square);
  };
  EXPECT_LT(length(MatrixOf(*error, 6)), 10 * length(gradient));
}

TEST(GradientReductionTest, FactorsAreSentIfTheyHaveHalfOfTheNumbers) {
  EXPECT_TRUE(IsCompressed({16, 16}, 4));
  EXPECT_FALSE(IsCompressed({16, 15}, 4));
  EXPECT_FALSE(IsCompressed({16, 16}, 5));
  EXPECT_FALSE(IsCompressed({1000}, 1));
  EXPECT_FALSE(IsCompressed({1000, 1}, 1));
  EXPECT_FALSE(IsCompressed({0, 10}, 1));
  EXPECT_FALSE(IsCompressed({}, 1));
  EXPECT_TRUE(IsCompressed({64, 32, 3, 3}, 4));
  EXPECT_EQ(NumbersToReduce({64, 32, 3, 3}, 4), 4 * (64 + 288));
  EXPECT_EQ(NumbersToReduce({16, 15}, 4), 240);
  EXPECT_TRUE(IsCompressed({int64_t{1} << 31, int64_t{1} << 31}, 64));
}

}  // namespace
}  // namespace tandem
