#ifndef TANDEM_ENGINE_COLLECTIVES_GLOO_FOLDER_RENDEZVOUS_H_
#define TANDEM_ENGINE_COLLECTIVES_GLOO_FOLDER_RENDEZVOUS_H_

#include <string>

#include "engine/collectives/gloo/rendezvous.h"

namespace tandem {

// A rendezvous in a folder that all processes see, with a file for each key. Each group needs its own folder.
// It must exist and be empty.
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
