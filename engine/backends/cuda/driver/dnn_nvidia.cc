#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "engine/backend/algorithm_memory.h"
#include "engine/backends/cuda/driver/convolution_check.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/cudnn_graph.h"
#include "engine/backends/cuda/driver/cudnn_older.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/backends/cuda/driver/measure.h"
#include "engine/backends/cuda/driver/plan_memory.h"
#include "engine/base/status_macros.h"

// Chooses among cuDNN's ways to compute a convolution.

namespace tandem::cuda {
namespace {

// The limits of measuring: the number of engines, and the time after which no further engine is tried. Some
// are compiled first.
constexpr int kMostMeasured = 24;
constexpr double kMostSeconds = 1.5;
// The approximate cost of a separate kernel for the bias, which reads and writes the result.
constexpr double kPassSeconds = 2e-6;
constexpr double kBytesPerSecond = 2.5e12;

// The prefixes of algorithm words.
constexpr absl::string_view kFused = "fused:";
constexpr absl::string_view kAlone = "alone:";
constexpr absl::string_view kOlder = "older";
constexpr absl::string_view kNone = "none";

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class GraphConvolution final : public Convolution {
 public:
  GraphConvolution(std::shared_ptr<const ConvolutionGraph> graph, ConvolutionGraph::Engine engine,
                   Descriptor plan, int64_t workspace_bytes)
      : graph_(std::move(graph)),
        engine_(std::move(engine)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  bool adds_bias() const override { return graph_->with_bias(); }
  bool takes_relu() const override { return graph_->with_relu(); }
  std::string algorithm() const override { return engine_.word; }
  absl::Status Run(void* x, void* weight, void* y, const void* bias, void* workspace,
                   Stream stream) const override {
    return graph_->Execute(plan_, x, weight, y, bias, workspace, stream);
  }

 private:
  const std::shared_ptr<const ConvolutionGraph> graph_;
  const ConvolutionGraph::Engine engine_;
  const Descriptor plan_;
  const int64_t workspace_bytes_;
};

// A convolution that several steps with the same problem share.
class SharedConvolution final : public Convolution {
 public:
  explicit SharedConvolution(std::shared_ptr<const Convolution> shared) : shared_(std::move(shared)) {}
  int64_t workspace_bytes() const override { return shared_->workspace_bytes(); }
  bool adds_bias() const override { return shared_->adds_bias(); }
  bool takes_relu() const override { return shared_->takes_relu(); }
  std::string algorithm() const override { return shared_->algorithm(); }
  absl::Status Run(void* x, void* weight, void* y, const void* bias, void* workspace,
                   Stream stream) const override {
    return shared_->Run(x, weight, y, bias, workspace, stream);
  }

 private:
  const std::shared_ptr<const Convolution> shared_;
};

// A convolution, with the word that finds it again.
struct Chosen {
  std::shared_ptr<const Convolution> convolution;
  std::string word;
  double seconds = std::numeric_limits<double>::infinity();
};

// Memory to measure a problem with.
struct Tensors {
  DeviceMemory x, weight, y, bias, workspace;

  static absl::StatusOr<Tensors> Allocate(const ConvolutionSpec& s, int64_t workspace_bytes,
                                          const LibraryOptions& options, Stream stream) {
    const int64_t x = s.n * s.h * s.w * s.c;
    const int64_t weight = s.k * s.kernel_h * s.kernel_w * (s.c / s.groups);
    const int64_t y = s.n * s.out_h * s.out_w * s.k;
    TANDEM_RETURN_IF_ERROR(CheckRoom(options, (x + weight + y + s.k) * SizeOf(s.type) + workspace_bytes));
    Tensors tensors;
    TANDEM_ASSIGN_OR_RETURN(tensors.x, RandomNumbers(s.type, x, stream));
    TANDEM_ASSIGN_OR_RETURN(tensors.weight, RandomNumbers(s.type, weight, stream));
    TANDEM_ASSIGN_OR_RETURN(tensors.y, RandomNumbers(s.type, y, stream));
    TANDEM_ASSIGN_OR_RETURN(tensors.bias, RandomNumbers(s.type, s.k, stream));
    TANDEM_ASSIGN_OR_RETURN(tensors.workspace, DeviceMemory::Allocate(workspace_bytes));
    return tensors;
  }
};

class CudnnDnn final : public Dnn {
 public:
  static absl::StatusOr<std::unique_ptr<Dnn>> Create(const LibraryOptions& options) {
    TANDEM_ASSIGN_OR_RETURN(const CudnnApi* api, CudnnApi::Load());
    auto handle = std::make_shared<CudnnHandle>(*api);
    TANDEM_CUDNN(*api, create(&handle->handle));
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<OwnedStream> stream, OwnedStream::Create());
    TANDEM_ASSIGN_OR_RETURN(const std::string gpu, NameOfGpu());
    return std::unique_ptr<Dnn>(new CudnnDnn(options, std::move(handle), std::move(stream), gpu));
  }

  absl::StatusOr<std::unique_ptr<Convolution>> Plan(const ConvolutionSpec& spec,
                                                    int64_t workspace_cap) override {
    TANDEM_RETURN_IF_ERROR(CheckSpec(spec));
    const std::string key =
        PlanKey("cudnn", handle_->api.get_version(), gpu_, options_, spec.ToString(), workspace_cap);
    auto planned = planned_.find(key);
    if (planned == planned_.end()) {
      absl::StatusOr<std::shared_ptr<const Convolution>> made = PlanNew(spec, key, workspace_cap);
      if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
      planned = planned_.emplace(key, std::move(made)).first;
    }
    TANDEM_RETURN_IF_ERROR(planned->second.status());
    return std::unique_ptr<Convolution>(new SharedConvolution(*planned->second));
  }

 private:
  CudnnDnn(const LibraryOptions& options, std::shared_ptr<CudnnHandle> handle,
           std::unique_ptr<OwnedStream> stream, std::string gpu)
      : options_(options), handle_(std::move(handle)), stream_(std::move(stream)), gpu_(std::move(gpu)) {}

  absl::StatusOr<std::shared_ptr<const Convolution>> PlanNew(const ConvolutionSpec& spec,
                                                             const std::string& key, int64_t cap) {
    // Measurements differ between runs, so deterministic runs must not depend on them.
    if (options_.deterministic) {
      TANDEM_ASSIGN_OR_RETURN(Chosen first, Search(spec, cap));
      return first.convolution;
    }
    absl::optional<absl::StatusOr<Chosen>> found;
    const auto measure = [&]() -> absl::optional<std::string> {
      found = Search(spec, cap);
      // A result after a failure of the device, or a guess for lack of room, must not be remembered.
      if (absl::Status device = stream_->Synchronize(); !device.ok()) found = device;
      if (absl::IsUnimplemented(found->status())) return std::string(kNone);
      const bool guessed = found->ok() && std::isinf((*found)->seconds) && (*found)->word != kOlder;
      return found->ok() && !guessed ? absl::make_optional((*found)->word) : absl::nullopt;
    };
    const absl::optional<std::string> remembered = RememberedPlans().Choose(key, measure);
    if (!found.has_value() && remembered.has_value()) {
      if (*remembered == kNone) {
        return absl::UnimplementedError(absl::StrCat("cudnn has no way for ", spec.ToString()));
      }
      absl::StatusOr<Chosen> again = Again(spec, *remembered, cap);
      if (again.ok()) return again->convolution;
    }
    if (!found.has_value()) found = Search(spec, cap);
    TANDEM_RETURN_IF_ERROR(found->status());
    return (*found)->convolution;
  }

  absl::StatusOr<Chosen> Make(const std::shared_ptr<const ConvolutionGraph>& graph,
                              ConvolutionGraph::Engine engine, int64_t cap) const {
    TANDEM_ASSIGN_OR_RETURN(Descriptor plan, graph->PlanFor(engine));
    TANDEM_ASSIGN_OR_RETURN(const int64_t bytes, ConvolutionGraph::WorkspaceBytes(plan));
    if (bytes > cap) {
      return absl::UnimplementedError(
          absl::StrCat("cudnn: ", engine.word, " wants ", bytes, " bytes of workspace"));
    }
    const bool fused = graph->with_bias() || graph->with_relu();
    Chosen chosen;
    chosen.word = absl::StrCat(fused ? kFused : kAlone, engine.word);
    chosen.convolution = std::make_shared<GraphConvolution>(graph, std::move(engine), std::move(plan), bytes);
    return chosen;
  }

  absl::StatusOr<std::shared_ptr<const ConvolutionGraph>> Graph(const ConvolutionSpec& spec,
                                                                bool fused) const {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<ConvolutionGraph> graph,
                            ConvolutionGraph::Create(handle_, spec, fused && spec.bias, fused && spec.relu));
    return std::shared_ptr<const ConvolutionGraph>(std::move(graph));
  }

  // Returns the algorithm of a word.
  absl::StatusOr<Chosen> Again(const ConvolutionSpec& spec, absl::string_view word, int64_t cap) const {
    if (word == kOlder) return Older(spec, cap);
    const bool fused = absl::ConsumePrefix(&word, kFused);
    if (!fused && !absl::ConsumePrefix(&word, kAlone)) {
      return absl::InvalidArgumentError(absl::StrCat("cudnn: no algorithm \"", word, "\""));
    }
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<const ConvolutionGraph> graph, Graph(spec, fused));
    TANDEM_ASSIGN_OR_RETURN(ConvolutionGraph::Engine engine, graph->EngineOf(std::string(word)));
    return Make(graph, std::move(engine), cap);
  }

  absl::StatusOr<Chosen> Older(const ConvolutionSpec& spec, int64_t cap) const {
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<Convolution> convolution,
                            PlanOlderConvolution(handle_, spec, options_, cap));
    Chosen chosen;
    chosen.word = std::string(kOlder);
    chosen.convolution = std::move(convolution);
    return chosen;
  }

  // INTERNAL if the engine's result in `tensors` is not exact enough.
  absl::Status Check(const ConvolutionSpec& spec, const ConvolutionCheck& check, const Tensors& tensors,
                     absl::string_view word) const {
    const DeviceMemory& written = spec.kind == ConvolutionKind::kForward     ? tensors.y
                                  : spec.kind == ConvolutionKind::kGradInput ? tensors.x
                                                                             : tensors.weight;
    TANDEM_ASSIGN_OR_RETURN(const double error, check.Error(written.data(), *stream_));
    const double most = MostConvolutionError(spec.type, options_.allow_tf32);
    if (error <= most) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("cudnn: ", word, " is off by ", error, ", more than ", most, ", for ", spec.ToString()));
  }

  // Searches the graph's engines with this fit that are exact enough. Returns the fastest, or with
  // `deterministic` the first.
  absl::StatusOr<Chosen> SearchGraph(const ConvolutionSpec& spec, bool fused, EngineFit fit, int64_t cap) {
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<const ConvolutionGraph> graph, Graph(spec, fused));
    TANDEM_ASSIGN_OR_RETURN(std::vector<ConvolutionGraph::Engine> engines, graph->Propose());
    ConvolutionSpec whole = spec;
    whole.bias = fused && spec.bias;
    whole.relu = fused && spec.relu;
    const ConvolutionCheck check(whole);
    absl::optional<Tensors> tensors;
    Chosen best;
    absl::Status failed = absl::UnimplementedError("cudnn: no engine keeps to the asked precision");
    int measured = 0;
    const double begin = Now();
    for (ConvolutionGraph::Engine& engine : engines) {
      if (FitOf(engine.notes, spec.type, options_) != fit) continue;
      if (best.convolution != nullptr && (measured >= kMostMeasured || Now() - begin > kMostSeconds)) break;
      absl::StatusOr<Chosen> made = Make(graph, std::move(engine), cap);
      if (!made.ok()) {
        failed = made.status();
        continue;
      }
      if (!tensors.has_value()) {
        absl::StatusOr<Tensors> allocated = Tensors::Allocate(spec, cap, options_, stream_->get());
        // Without room for measuring, the guess is used.
        if (absl::IsResourceExhausted(allocated.status())) return made;
        TANDEM_RETURN_IF_ERROR(allocated.status());
        tensors = *std::move(allocated);
        TANDEM_RETURN_IF_ERROR(stream_->Synchronize());
      }
      const absl::StatusOr<double> seconds = MeasureSeconds(*stream_, [&](Stream stream) {
        return made->convolution->Run(tensors->x.data(), tensors->weight.data(), tensors->y.data(),
                                      tensors->bias.data(), tensors->workspace.data(), stream);
      });
      ++measured;
      if (!seconds.ok()) {
        failed = seconds.status();
        continue;
      }
      if (absl::Status right = Check(spec, check, *tensors, made->word); !right.ok()) {
        failed = std::move(right);
        continue;
      }
      made->seconds = *seconds;
      if (made->seconds < best.seconds) best = *std::move(made);
      if (options_.deterministic) break;
    }
    if (best.convolution == nullptr) return failed;
    return best;
  }

  absl::StatusOr<Chosen> Search(const ConvolutionSpec& spec, int64_t cap) {
    absl::StatusOr<Chosen> graph = SearchGraphs(spec, EngineFit::kFits, cap);
    if (graph.ok() || absl::IsResourceExhausted(graph.status())) return graph;
    absl::StatusOr<Chosen> older = Older(spec, cap);
    if (older.ok() || absl::IsResourceExhausted(older.status())) return older;
    absl::StatusOr<Chosen> last = SearchGraphs(spec, EngineFit::kLastResort, cap);
    if (last.ok() || absl::IsResourceExhausted(last.status())) return last;
    return absl::UnimplementedError(absl::StrCat("cudnn has no way for ", spec.ToString(), ": ",
                                                 graph.status().message(), "; ", older.status().message()));
  }

  // Returns the faster of two ways: with the bias fused, or with a separate pass for the bias.
  absl::StatusOr<Chosen> SearchGraphs(const ConvolutionSpec& spec, EngineFit fit, int64_t cap) {
    Chosen best;
    // No engine fuses a ReLU without a bias.
    if (spec.bias) {
      absl::StatusOr<Chosen> fused = SearchGraph(spec, true, fit, cap);
      if (fused.ok()) best = *std::move(fused);
      if (best.convolution != nullptr && options_.deterministic) return best;
    }
    absl::StatusOr<Chosen> alone = SearchGraph(spec, false, fit, cap);
    if (alone.ok()) {
      if (spec.bias) {
        const int64_t bytes = 2 * spec.n * spec.out_h * spec.out_w * spec.k * SizeOf(spec.type);
        alone->seconds += kPassSeconds + static_cast<double>(bytes) / kBytesPerSecond;
      }
      if (best.convolution == nullptr || alone->seconds < best.seconds) best = *std::move(alone);
    }
    if (best.convolution != nullptr) return best;
    return alone.status();
  }

  const LibraryOptions options_;
  const std::shared_ptr<CudnnHandle> handle_;
  const std::unique_ptr<OwnedStream> stream_;
  const std::string gpu_;
  // By problem, including problems without a way.
  std::map<std::string, absl::StatusOr<std::shared_ptr<const Convolution>>> planned_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& options) {
  return CudnnDnn::Create(options);
}

}  // namespace tandem::cuda
