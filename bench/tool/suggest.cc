#include "bench/tool/suggest.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace expanse::tool {
namespace {

constexpr size_t kMaxFiles = 10000;  // looked at in one folder
constexpr size_t kMaxWord = 256;

}  // namespace

size_t EditDistance(const std::string& a, const std::string& b) {
  // Three rows of the table of distances between prefixes; swaps look two rows up.
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string Nearest(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxWord) return "";
  std::string nearest;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxWord) continue;
    const size_t distance = EditDistance(word, candidate);
    // Nothing of the word left is not near.
    if (distance < least && distance < std::max(word.size(), candidate.size())) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

std::string DidYouMeanFile(const std::string& path) {
  const std::filesystem::path given(path);
  const std::filesystem::path folder = given.has_parent_path() ? given.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (names.size() == kMaxFiles) break;
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // the order of a folder is nobody's
  const std::string nearest = Nearest(given.filename().string(), names);
  if (nearest.empty()) return "";
  const std::string meant = given.has_parent_path() ? (given.parent_path() / nearest).string() : nearest;
  return absl::StrCat("; did you mean '", meant, "'?");
}

}  // namespace expanse::tool
