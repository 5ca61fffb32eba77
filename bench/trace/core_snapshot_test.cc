// What the library writes about itself, read by those for whom it is written: snapshots in PyTorch's layout by the
// reader of such snapshots and by Python, recordings by the reader of traces, JSON by its schema.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/trace/base_format.h"
#include "bench/trace/reader.h"
#include "core/allocator_fixture.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace expanse::bench {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The parts of JSON Schema that the schema uses. Returns the first place that breaks it, or nothing.
class Schema {
 public:
  explicit Schema(Json root) : root_(std::move(root)) {}
  std::string Check(const Json& value) const { return Check(root_, value, "$"); }

 private:
  static bool HasType(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    return type == (value.is_boolean() ? "boolean" : value.type_name());
  }

  std::string Check(const Json& schema, const Json& value, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string pointer = schema["$ref"].get<std::string>().substr(1);
      return Check(root_.at(Json::json_pointer(pointer)), value, at);
    }
    if (schema.contains("const") && schema["const"] != value) return at + " is not " + schema["const"].dump();
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      return at + " is none of " + schema["enum"].dump();
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      const bool fits = std::any_of(types.begin(), types.end(),
                                    [&](const Json& type) { return HasType(value, type.get<std::string>()); });
      if (!fits) return at + " is no " + types.dump();
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) return at + " is too low";
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i) {
        std::string broken = Check(schema["items"], value[i], at + "[" + std::to_string(i) + "]");
        if (!broken.empty()) return broken;
      }
    }
    if (!value.is_object()) return "";
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) return at + " lacks " + key.dump();
    }
    for (const auto& [key, member] : value.items()) {
      if (!schema["properties"].contains(key)) return at + "." + key + " is not in the schema";
      std::string broken = Check(schema["properties"][key], member, at + "." + key);
      if (!broken.empty()) return broken;
    }
    return "";
  }

  const Json root_;
};

// Python's own pickle loads it, and it has all that PyTorch's viewers look at: scripts/check_pytorch_snapshot.py.
testing::AssertionResult PythonAccepts(const Snapshot& snapshot) {
#ifdef EXPANSE_SNAPSHOT_CHECK
  const std::string path = testing::TempDir() + "/core_snapshot_test." + std::to_string(getpid()) + ".pickle";
  std::ofstream(path, std::ios::binary) << ToPyTorchPickle(snapshot);
  const int status = std::system(("exec " EXPANSE_SNAPSHOT_CHECK " '" + path + "' >/dev/null").c_str());
  std::remove(path.c_str());
  if (status == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the check ended with " << status << ", and said above what is wrong";
#else
  (void)snapshot;
  return testing::AssertionSuccess() << "no Python here";
#endif
}

class CoreSnapshot : public AllocatorTest {
 protected:
  // Everything that a snapshot can hold, on a device whose memory runs out.
  void SetUp() override {
    AllocatorOptions options;
    options.record_events = 1000;
    Start(SmallDevice(), options);
    const StreamHandle stream = NewStream();
    small_ = Alloc(Bytes(1000));
    const DeviceAddress pending = Alloc(MiB(3), stream);
    live_ = Alloc(MiB(2), stream);
    Free(Alloc(MiB(5)));
    ASSERT_EQ(allocator_->Mark("step0"), absl::OkStatus());
    RecordUse(small_, stream);
    EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(64))));
    Launch(StreamHandle(), std::chrono::milliseconds(1), pending, MiB(3));
    Free(pending, StreamHandle());
    PoolOptions pool;
    pool.name = "a \"pool\"";
    pool.limit = MiB(8);
    ASSERT_TRUE(allocator_->CreatePool(pool).ok());
  }

  LoadedTrace Read(std::string contents) {
    Input input;
    input.name = "test";
    input.text = std::move(contents);
    absl::StatusOr<LoadedTrace> loaded = ParseTrace(input);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : LoadedTrace{};
  }

  DeviceAddress small_, live_;
};

TEST_F(CoreSnapshot, PyTorchsLayoutIsReadBack) {
  const LoadedTrace loaded = Read(ToPyTorchPickle(allocator_->TakeSnapshot()));
  EXPECT_EQ(loaded.format, TraceFormat::kPyTorchSnapshot);
  EXPECT_THAT(loaded.warnings, IsEmpty()) << "events and blocks agree, and every key is known";
  // The pending block's free is not complete, so it has none.
  EXPECT_EQ(*FormatBaseFormat(loaded.trace),
            "op,id,bytes,stream\na,0,1000,0\na,1,3145728,1\na,2,2097152,1\na,3,5242880,0\nf,3,,0\nm,oom_67108864,,\n");
}

TEST_F(CoreSnapshot, PyTorchsLayoutHasTheBlocksWithoutARecording) {
  Snapshot snapshot = allocator_->TakeSnapshot();
  snapshot.events.clear();
  const LoadedTrace loaded = Read(ToPyTorchPickle(snapshot));
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("no allocation was recorded")));
  std::vector<std::pair<uint64_t, int32_t>> blocks;
  for (const TraceEvent& event : loaded.trace.events) {
    if (event.op == TraceOp::kAllocate) blocks.emplace_back(event.value, event.stream);
  }
  std::sort(blocks.begin(), blocks.end());
  EXPECT_THAT(blocks, ElementsAre(std::pair<uint64_t, int32_t>(1000, 0), std::pair<uint64_t, int32_t>(2097152, 1),
                                  std::pair<uint64_t, int32_t>(3145728, 1)));
}

TEST_F(CoreSnapshot, PythonReadsPyTorchsLayout) {
#ifndef EXPANSE_SNAPSHOT_CHECK
  GTEST_SKIP() << "no Python 3 when this was built";
#endif
  Snapshot snapshot = allocator_->TakeSnapshot();
  EXPECT_TRUE(PythonAccepts(snapshot));
  EXPECT_TRUE(PythonAccepts(Snapshot()));
  // The check looks: more cannot be asked for than a block holds.
  snapshot.segments.front().blocks.front().requested = GiB(1);
  EXPECT_FALSE(PythonAccepts(snapshot));
}

TEST_F(CoreSnapshot, ARecordingIsATrace) {
  const absl::StatusOr<std::string> recording = allocator_->GetRecording();
  ASSERT_TRUE(recording.ok()) << recording.status();
  const LoadedTrace loaded = Read(*recording);
  EXPECT_EQ(*FormatBaseFormat(loaded.trace), *recording);
  EXPECT_EQ(Summarize(loaded.trace).live_at_end, stats().live.current);
}

// Whatever the ring has lost, what is left is a trace that ends with what is live.
TEST(CoreRecording, IsATraceWhereverItsWindowBegins) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(seed);
    sim::Config config;
    config.devices[0].total_memory = MiB(64);
    config.memory = sim::MemoryMode::kAccounting;
    auto simulator = sim::Simulator::Create(config);
    ASSERT_TRUE(simulator.ok()) << simulator.status();
    AllocatorOptions options;
    options.record_events = 50;
    auto created = Allocator::Create((*simulator)->driver(), options);
    ASSERT_TRUE(created.ok()) << created.status();
    Allocator& allocator = **created;
    std::mt19937_64 random(seed);
    std::vector<DeviceAddress> live;
    for (int i = 0; i < 1000; ++i) {
      const StreamHandle stream = random() % 2 == 0 ? StreamHandle() : StreamHandle::PerThread();
      if (live.empty() || random() % 2 == 0) {
        const auto address = allocator.Allocate(Bytes(1 + random() % (8 << 20)), stream);
        if (address.ok()) live.push_back(*address);
      } else {
        std::swap(live[random() % live.size()], live.back());
        if (random() % 4 == 0) {
          ASSERT_EQ(allocator.RecordUse(live.back(), stream), absl::OkStatus());
        }
        ASSERT_EQ(allocator.Free(live.back(), stream), absl::OkStatus());
        live.pop_back();
      }
      if (random() % 16 == 0) {
        ASSERT_EQ(allocator.Mark("step" + std::to_string(i)), absl::OkStatus());
      }
      ASSERT_EQ(allocator.CheckInvariants(), absl::OkStatus());
      const absl::StatusOr<std::string> recording = allocator.GetRecording();
      ASSERT_TRUE(recording.ok()) << recording.status();
      const absl::StatusOr<Trace> trace = ParseBaseFormat(*recording, "recording");
      ASSERT_TRUE(trace.ok()) << trace.status();
      ASSERT_EQ(Summarize(*trace).live_at_end, allocator.GetStats().live.current);
      ASSERT_EQ(Summarize(*trace).live_blocks_at_end, live.size());
      if (i == 999) {
        ASSERT_TRUE(PythonAccepts(allocator.TakeSnapshot()));
      }
    }
  }
}

TEST_F(CoreSnapshot, JsonFollowsItsSchema) {
  std::ifstream file(EXPANSE_DOCS_DIR "/snapshot.schema.json");
  const Schema schema(Json::parse(file));
  Json json = Json::parse(ToJson(allocator_->TakeSnapshot()));
  EXPECT_EQ(schema.Check(json), "");
  EXPECT_EQ(json.at("stats").at("live").at("current_bytes"), 2098152);
  EXPECT_EQ(json.at("stats").at("rungs").at("failed"), 1);
  EXPECT_EQ(json.at("pools").at(1).at("name"), "a \"pool\"");
  EXPECT_EQ(json.at("pools").at(1).at("limit_bytes"), 8388608);
  EXPECT_TRUE(json.at("limit_bytes").is_null());
  uint64_t pending = 0;
  for (const Json& segment : json.at("segments")) {
    for (const Json& block : segment.at("blocks")) {
      if (block.at("state") == "pending") pending += block.at("bytes").get<uint64_t>();
    }
  }
  EXPECT_EQ(pending, 3145728u);
  EXPECT_EQ(json.at("events").back().at("kind"), "free_pending");
  // The check sees what is wrong.
  json.at("events").at(0)["colour"] = 1;
  EXPECT_NE(schema.Check(json), "");
  json.at("events").at(0).erase("colour");
  json.at("streams").at(0)["number"] = "0";
  EXPECT_NE(schema.Check(json), "");
  json.at("streams").at(0).erase("number");
  EXPECT_NE(schema.Check(json), "");
}

// The names in a schema: of fields, and of the values that a field may have.
void AddNames(const Json& schema, std::vector<std::string>& names) {
  if (schema.is_object() && schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items()) names.push_back(name);
  }
  if (schema.is_object() && schema.contains("enum")) {
    for (const Json& value : schema["enum"]) names.push_back(value.get<std::string>());
  }
  for (const Json& part : schema) {
    if (part.is_structured()) AddNames(part, names);
  }
}

TEST(SnapshotSchema, EveryNameInItIsExplained) {
  std::ifstream schema(EXPANSE_DOCS_DIR "/snapshot.schema.json");
  std::ifstream file(EXPANSE_DOCS_DIR "/statistics.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> names;
  AddNames(Json::parse(schema), names);
  EXPECT_GT(names.size(), 80u);
  for (const std::string& name : names) {
    // Whole, or as a part of one: gpu_stalls.count.
    const std::string ends[] = {'`' + name + '`', '`' + name + '.', '.' + name + '`'};
    const bool explained = std::any_of(std::begin(ends), std::end(ends),
                                       [&](const std::string& end) { return text.find(end) != std::string::npos; });
    EXPECT_TRUE(explained) << name;
  }
}

TEST_F(CoreSnapshot, AnAllocatorThatHoldsNothingHasOneToo) {
  ASSERT_EQ(allocator_->Free(small_), absl::OkStatus());
  const Snapshot empty;
  std::ifstream file(EXPANSE_DOCS_DIR "/snapshot.schema.json");
  EXPECT_EQ(Schema(Json::parse(file)).Check(Json::parse(ToJson(empty))), "");
  EXPECT_THAT(Read(ToPyTorchPickle(empty)).trace.events, IsEmpty());
}

}  // namespace
}  // namespace expanse::bench
