#ifndef TANDEM_ENGINE_GRAPH_GRAPH_USES_H_
#define TANDEM_ENGINE_GRAPH_GRAPH_USES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"

namespace tandem {

// The nodes that read and change the values of a graph. The graph must outlive this object and must not
// change. Immutable.
class GraphUses {
 public:
  explicit GraphUses(const Graph& graph);

  const Graph& graph() const { return graph_; }
  // Returns the nodes that read the value, in order, each a single time.
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id]; }
  // Returns whether the host reads the value.
  bool IsOutput(ValueId id) const { return is_output_[id]; }
  // Returns the node that computes the value, if the node has this kind, else null.
  const Node* MakerOf(ValueId id, absl::string_view kind) const;
  // Returns the only reader of the value, if the reader has this kind and reads the value once. Null if there
  // are other readers or the host reads the value.
  const Node* OnlyReader(ValueId id, absl::string_view kind) const;
  // Returns whether a node after `first` and before `last` changes the value, a variable, in place.
  bool ChangesBetween(ValueId id, NodeId first, NodeId last) const;
  // Returns whether any node after `node` changes the value.
  bool ChangesAfter(ValueId id, NodeId node) const {
    return ChangesBetween(id, node, static_cast<NodeId>(graph_.nodes().size()));
  }
  // Returns the parameter that an optimizer changes by this gradient, or kNoValue. Other nodes may reduce,
  // unscale and clip the gradient first.
  ValueId ParameterOf(ValueId grad) const;

 private:
  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // By value.
  std::vector<bool> is_output_;               // By value.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_GRAPH_USES_H_
