#ifndef TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_
#define TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_

#include "absl/strings/string_view.h"

namespace tandem::dashboard {

// A file of the page, which the program contains.
struct PageFile {
  absl::string_view content;
  absl::string_view type;
};

// The file of this name ("jobs_view.js"); null if there is none.
const PageFile* FindPageFile(absl::string_view name);

// False: the program was built without uPlot, which draws the charts, and so without the page.
bool HasPage();

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_
