#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_FOLDER_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_FOLDER_RENDEZVOUS_H_

#include <string>

#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// A folder that all processes see: a file a key. Each group needs a folder of its own, which exists and is
// empty.
class FolderRendezvous final : public Rendezvous {
 public:
  explicit FolderRendezvous(std::string folder);

  absl::Status Publish(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Await(const std::string& key, absl::Duration timeout) override;

 private:
  const std::string folder_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_GLOO_FOLDER_RENDEZVOUS_H_
