// Reads recorded traces where they are at hand (EXPANSE_SHARED_DIR/traces) and compares with a parser that shares
// nothing with the one under test.

#include <zlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "bench/trace/base_format.h"
#include "bench/trace/reader.h"
#include "bench/trace/trace.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

const std::filesystem::path kTraces = std::filesystem::path(EXPANSE_SHARED_DIR) / "traces";

struct PlainFigures {
  uint64_t events = 0;
  uint64_t peak_live = 0;
  uint64_t live_at_end = 0;
};

// gzgets reads plain files too.
PlainFigures ReadPlainly(const std::string& path) {
  PlainFigures figures;
  std::map<std::string, uint64_t> live;
  uint64_t now = 0;
  const gzFile file = gzopen(path.c_str(), "rb");
  char line[512];
  while (gzgets(file, line, sizeof line) != nullptr) {
    const std::string row = line;
    if (row[1] != ',') continue;
    const std::string id = row.substr(2, row.find(',', 2) - 2);
    if (row[0] == 'a') {
      live[id] = std::stoull(row.substr(row.find(',', 2) + 1));
      now += live[id];
      figures.peak_live = std::max(figures.peak_live, now);
      ++figures.events;
    } else if (row[0] == 'f') {
      now -= live.at(id);
      live.erase(id);
      ++figures.events;
    }
  }
  gzclose(file);
  figures.live_at_end = live.size();
  return figures;
}

TEST(SharedTraces, TextTracesReadWithTheRightFigures) {
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no recorded traces at " << kTraces;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces)) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".csv") && !absl::EndsWith(path, ".csv.gz")) continue;
    SCOPED_TRACE(path);
    const absl::StatusOr<LoadedTrace> loaded = ReadTrace(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_TRUE(Validate(loaded->trace).ok()) << Validate(loaded->trace);
    const TraceSummary summary = Summarize(loaded->trace);
    const PlainFigures expected = ReadPlainly(path);
    EXPECT_EQ(summary.events, expected.events);
    EXPECT_EQ(summary.peak_live.count(), expected.peak_live);
    EXPECT_EQ(summary.live_blocks_at_end, expected.live_at_end);
    EXPECT_GT(summary.events, 0u);
    ++read;
  }
  EXPECT_GT(read, 0);
}

TEST(SharedTraces, SnapshotsReadWithoutReservations) {
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no recorded traces at " << kTraces;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces)) {
    const std::string path = entry.path();
    if (!absl::EndsWith(path, ".pickle")) continue;
    SCOPED_TRACE(path);
    const absl::StatusOr<LoadedTrace> loaded = ReadTrace(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->format, TraceFormat::kPyTorchSnapshot);
    for (const std::string& warning : loaded->warnings) ADD_FAILURE() << warning;
    EXPECT_TRUE(Validate(loaded->trace).ok()) << Validate(loaded->trace);
    EXPECT_GT(Summarize(loaded->trace).events, 0u);
    ++read;
  }
  EXPECT_GT(read, 0);
}

// A snapshot and the same run converted by other hands.
TEST(SharedTraces, SnapshotAndItsTextTwinAreTheSameTrace) {
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no recorded traces at " << kTraces;
  const absl::StatusOr<LoadedTrace> snapshot = ReadTrace(kTraces / "fsdp_llama8b_oom.pickle");
  const absl::StatusOr<LoadedTrace> text = ReadTrace(kTraces / "fsdp_llama8b_oom.csv.gz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(FormatBaseFormat(snapshot->trace).value(), FormatBaseFormat(text->trace).value());
  EXPECT_EQ(Summarize(snapshot->trace).peak_live, Bytes(36227688704));
}

}  // namespace
}  // namespace expanse::bench
