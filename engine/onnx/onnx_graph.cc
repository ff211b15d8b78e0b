#include "engine/onnx/onnx_graph.h"

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

void SetAttribute(const OnnxAttribute& attribute, onnx::AttributeProto& to) {
  to.set_name(attribute.first);
  if (const auto* number = std::get_if<int64_t>(&attribute.second)) {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&attribute.second)) {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(*real);
  } else if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(*text);
  } else {
    to.set_type(onnx::AttributeProto::INTS);
    for (const int64_t each : std::get<std::vector<int64_t>>(attribute.second)) to.add_ints(each);
  }
}

onnx::TensorProto ToProto(const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : tensor.shape().extents()) proto.add_dims(extent);
  proto.set_raw_data(tensor.raw_data(), tensor.bytes());
  return proto;
}

}  // namespace

std::string OnnxGraph::NewName() { return absl::StrCat("value_", names_++); }

std::string OnnxGraph::Add(absl::string_view type, std::vector<std::string> inputs,
                           const std::vector<OnnxAttribute>& attributes, std::string output) {
  if (output.empty()) output = NewName();
  AddAll(type, inputs, attributes, {output});
  return output;
}

void OnnxGraph::AddAll(absl::string_view type, const std::vector<std::string>& inputs,
                       const std::vector<OnnxAttribute>& attributes,
                       const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *graph_->add_node();
  node.set_name(absl::StrCat(type, "_", graph_->node_size()));
  node.set_op_type(std::string(type));
  for (const std::string& input : inputs) node.add_input(input);
  for (const OnnxAttribute& attribute : attributes) SetAttribute(attribute, *node.add_attribute());
  for (const std::string& output : outputs) node.add_output(output);
}

std::string OnnxGraph::Scalar(double number) {
  Tensor tensor(DType::kFloat32, Shape());
  tensor.data<float>()[0] = static_cast<float>(number);
  return Floats(tensor);
}

std::string OnnxGraph::Integers(absl::Span<const int64_t> numbers) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(numbers.size()));
  for (const int64_t number : numbers) tensor.add_int64_data(number);
  return AddConstant(std::move(tensor));
}

std::string OnnxGraph::Floats(const Tensor& tensor) { return AddConstant(ToProto(tensor)); }

void OnnxGraph::AddWeight(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto& added = *graph_->add_initializer();
  added = ToProto(tensor);
  added.set_name(name);
}

std::string OnnxGraph::AddConstant(onnx::TensorProto constant) {
  std::string& name = constants_[constant.SerializeAsString()];
  if (!name.empty()) return name;
  name = absl::StrCat("constant_", constants_.size());
  constant.set_name(name);
  *graph_->add_initializer() = std::move(constant);
  return name;
}

}  // namespace tandem
