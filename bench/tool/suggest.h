// "Did you mean ...?"

#ifndef EXPANSE_BENCH_TOOL_SUGGEST_H_
#define EXPANSE_BENCH_TOOL_SUGGEST_H_

#include <cstddef>
#include <string>
#include <vector>

namespace expanse::tool {

// How many insertions, deletions, replacements and swaps of neighbours turn `a` into `b`. O(length of a * length of b).
[[nodiscard]] size_t EditDistance(const std::string& a, const std::string& b);

// The candidate nearest to `word` if it is near enough to be meant, or else an empty string.
[[nodiscard]] std::string Nearest(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" for the nearest candidate, or an empty string.
[[nodiscard]] std::string DidYouMean(const std::string& word, const std::vector<std::string>& candidates);

// The same for a path that does not exist, among the files beside it.
[[nodiscard]] std::string DidYouMeanFile(const std::string& path);

}  // namespace expanse::tool

#endif  // EXPANSE_BENCH_TOOL_SUGGEST_H_
