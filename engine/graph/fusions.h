#ifndef TANDEM_ENGINE_GRAPH_FUSIONS_H_
#define TANDEM_ENGINE_GRAPH_FUSIONS_H_

#include <map>
#include <set>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/graph_uses.h"

namespace tandem {

// The kinds of ops whose groups a backend computes in a single pass over memory.
struct FusableKinds {
  // Ops that compute a ReLU after them: convolutions, products, biases.
  std::vector<absl::string_view> before_relu = {};
  // Normalisations that compute a sum, a ReLU, or both after them.
  std::vector<absl::string_view> norms = {};
  // Gradients of normalisations that compute the gradient of a ReLU before them.
  std::vector<absl::string_view> norm_grads = {};
};

// An op with the ops after it: first + relu, or first + add, or first + add + relu. Only these ops read the
// values between them.
struct ForwardGroup {
  const Node* first = nullptr;
  const Node* add = nullptr;   // Null if there is no sum.
  ValueId addend = kNoValue;   // The sum's other summand.
  const Node* relu = nullptr;  // Null if there is no ReLU.

  // Returns the value that the group computes.
  ValueId result() const { return (relu != nullptr ? relu : add != nullptr ? add : first)->outputs[0]; }
};

// The gradient of a ReLU, and the gradient of a normalisation that reads the result.
struct BackwardGroup {
  const Node* add =
      nullptr;  // Sums two gradients for relu_grad, the sum's only reader. Null if there is none.
  const Node* relu_grad = nullptr;
  const Node* norm_grad = nullptr;
  // Whether the result of relu_grad has other readers too.
  bool shared = false;
  // The normalisation of norm_grad, if the ReLU follows it directly. Then the normalisation's inputs give the
  // ReLU's decisions again. Null otherwise.
  const Node* norm = nullptr;
};

// The groups of ops that may be computed together. A node belongs to at most one forward group and one
// backward group. Immutable. If a single backend fuses two ops, it needs no group: the Lower function of the
// first op asks GraphUses::OnlyReader. See "How do I fuse ops?" in engine/README.md.
class Fusions {
 public:
  // The graph of `uses` must outlive this object.
  Fusions(const GraphUses& uses, const FusableKinds& kinds);
  Fusions(const Fusions&) = delete;
  Fusions& operator=(const Fusions&) = delete;

  // Returns the group that begins with this node, or null.
  const ForwardGroup* From(const Node& first) const;
  // Returns the forward group whose sum is this node, or null.
  const ForwardGroup* WithSum(const Node& add) const;
  // Returns the group of this relu_grad, or null.
  const BackwardGroup* Backward(const Node& relu_grad) const;
  // Returns whether this node is the sum of a backward group.
  bool SumsBackward(const Node& add) const { return backward_sums_.count(add.id) > 0; }

 private:
  void AddForward(const GraphUses& uses, const FusableKinds& kinds, const Node& first);
  void AddBackward(const GraphUses& uses, const FusableKinds& kinds, const Node& relu_grad);

  std::map<NodeId, ForwardGroup> forward_;          // By the first node.
  std::map<NodeId, const ForwardGroup*> with_sum_;  // By the sum.
  std::map<NodeId, BackwardGroup> backward_;        // By relu_grad.
  std::set<NodeId> backward_sums_;                  // The sums of backward groups.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_FUSIONS_H_
