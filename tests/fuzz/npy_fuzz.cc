// NPY and NPZ files. The first byte chooses the format, the kind of the targets, and how arrays are read.

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/input_files.h"

namespace tandem {

std::vector<std::string> Seeds() {
  const std::string inputs = Npy("<f4", "(4, 3)", std::string(48, '\0'));
  const std::string targets = Npy("<i8", "(4,)", std::string(32, '\0'));
  const std::string bytes = Npy("|u1", "(4, 1, 2, 2)", std::string(16, '\x07'), "True");
  const std::string values = Npy("<f8", "(4, 2)", std::string(64, '\0'));
  return {"c" + JoinFiles({inputs, targets}),
          "c" + JoinFiles({bytes, targets}),
          "v" + JoinFiles({inputs, values}),
          "c" + JoinFiles({Npy(">f2", "(4L, 3L)", std::string(24, '\x3c'), "True"), targets}),
          "l" + JoinFiles({Npy(">i2", "(4, 2, 2, 3)", std::string(96, '\x01'), "True"),
                           Npy("|u1", "(4, 2)", std::string("\1\0\0\1\1\0\0\1", 8))}),
          "t" + JoinFiles({Npy("<u2", "(4, 3)", std::string(24, '\0')),
                           Npy("<i2", "(4, 3)", std::string(22, '\0') + std::string(2, '\xff'))}),
          "z" + Zip({{"x.npy", inputs}, {"y.npy", targets}}, false),
          "z" + Zip({{"x.npy", inputs}, {"y.npy", targets}}, true)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  tandem::v1::DatasetSpec spec;
  tandem::v1::NpySource* npy = spec.mutable_npy();
  if (data[0] == 'z') {
    const std::string path = tandem::WriteInput("arrays.npz", input);
    npy->mutable_train_inputs()->set_path(path);
    npy->mutable_train_inputs()->set_member("x");
    npy->mutable_train_targets()->set_path(path);
    npy->mutable_train_targets()->set_member("y");
  } else {
    const std::vector<absl::string_view> files = tandem::SplitFiles(input, 2);
    npy->mutable_train_inputs()->set_path(tandem::WriteInput("x.npy", files[0]));
    npy->mutable_train_targets()->set_path(tandem::WriteInput("y.npy", files[1]));
  }
  if (data[0] == 'l') npy->set_layout(tandem::v1::ARRAY_LAYOUT_NHWC);
  if (data[0] == 't') {
    npy->set_inputs(tandem::v1::SAMPLE_KIND_TOKENS);
    npy->set_ignore_index(-1);
    tandem::OpenAndRead(spec);
    return 0;
  }
  npy->set_targets(data[0] == 'v' ? tandem::v1::TARGET_KIND_VALUES : tandem::v1::TARGET_KIND_CLASS);
  tandem::OpenAndRead(spec);
  return 0;
}
