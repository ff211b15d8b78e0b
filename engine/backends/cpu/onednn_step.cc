#include "engine/backends/cpu/onednn_step.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "engine/backends/cpu/onednn.h"

namespace tandem::cpu {
namespace {

struct Bound {
  dnnl::primitive primitive;
  std::vector<OneDnnArgument> arguments;
  dnnl::stream stream;
  std::unordered_map<int, dnnl::memory> memories;
};

}  // namespace

Step OneDnnStep(std::string name, dnnl::primitive primitive, std::vector<OneDnnArgument> reads,
                std::vector<OneDnnArgument> writes) {
  auto bound = std::make_shared<Bound>();
  Step step;
  step.name = std::move(name);
  for (const OneDnnArgument& read : reads) step.reads.push_back(read.region);
  for (const OneDnnArgument& write : writes) step.writes.push_back(write.region);
  bound->primitive = std::move(primitive);
  bound->arguments = std::move(reads);
  bound->arguments.insert(bound->arguments.end(), writes.begin(), writes.end());
  bound->stream = dnnl::stream(OneDnnEngine());
  step.bind = [bound](const RunContext& run) {
    return CallOneDnn([&] {
      for (const OneDnnArgument& argument : bound->arguments) {
        bound->memories[argument.argument] =
            dnnl::memory(argument.desc, OneDnnEngine(), run.At<void>(argument.region));
      }
      return absl::OkStatus();
    });
  };
  step.run = [bound](const RunContext&) {
    return CallOneDnn([&] {
      bound->primitive.execute(bound->stream, bound->memories);
      return absl::OkStatus();
    });
  };
  return step;
}

}  // namespace tandem::cpu
