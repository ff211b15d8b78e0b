#ifndef TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_
#define TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem::dashboard {

// A file of the page. The program contains it.
struct PageFile {
  absl::string_view content;
  absl::string_view type;
};

// Returns the file with this name ("jobs_view.js"), or null.
const PageFile* FindPageFile(absl::string_view name);

// Returns false if the program was built without uPlot, which draws the charts. Such a program has no page.
bool HasPage();

// Returns the source that allows the script in index.html in a Content-Security-Policy: 'sha256-…'.
std::string InlineScriptSource();

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_PAGE_FILES_H_
