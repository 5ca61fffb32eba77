#include "core/snapshot.h"

#include <string>

#include "core/allocator_fixture.h"
#include "core/json_writer.h"
#include "core/pickle_writer.h"
#include "gmock/gmock.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(JsonWriter, EscapesWhatMustBeEscaped) {
  JsonWriter json;
  json.BeginObject();
  json.Add("a\"b", "c\\d\n\x01");
  json.Add("none", std::optional<uint64_t>());
  json.Key("list");
  json.BeginArray();
  json.Number(18446744073709551615u);
  json.Bool(false);
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.AddBool("last", true);
  json.EndObject();
  EXPECT_EQ(std::move(json).Finish(),
            R"({"a\"b":"c\\d\u000a\u0001","none":null,"list":[18446744073709551615,false,{}],"last":true})");
}

// What pickle.loads makes of these bytes was compared with Python's own reader.
TEST(PickleWriter, WritesTheOpcodesOfProtocol2) {
  PickleWriter pickle;
  pickle.BeginDict();
  pickle.Key("k");
  pickle.BeginList();
  pickle.Int(255);
  pickle.Int(-1);
  pickle.Int(int64_t{1} << 40);
  pickle.Float(0.5);
  pickle.Bool(true);
  pickle.None();
  pickle.Pair(0, 7);
  pickle.String("s");
  pickle.End();
  pickle.End();
  using std::string_literals::operator""s;
  EXPECT_EQ(std::move(pickle).Finish(),
            "\x80\x02}(X\x01\0\0\0k](K\xffJ\xff\xff\xff\xff\x8a\x08\0\0\0\0\0\x01\0\0G\x3f\xe0\0\0\0\0\0\0\x88NK\0K\x07"
            "\x86X\x01\0\0\0seu."s);
}

class SnapshotTest : public AllocatorTest {};

TEST_F(SnapshotTest, HasEverythingThatIsHeld) {
  AllocatorOptions options;
  options.record_events = 100;
  Start(SmallDevice(), options);
  const StreamHandle stream = NewStream();
  const DeviceAddress small = Alloc(Bytes(1000), stream);
  const DeviceAddress pending = Alloc(MiB(3));
  const DeviceAddress live = Alloc(MiB(2));
  Free(Alloc(MiB(5)));
  ASSERT_EQ(allocator_->Mark("here"), absl::OkStatus());
  Launch(stream, std::chrono::milliseconds(1), pending, MiB(3));
  Free(pending, stream);
  const uint64_t calls = DriverCalls();
  const Snapshot snapshot = allocator_->TakeSnapshot();
  EXPECT_EQ(DriverCalls(), calls);

  EXPECT_EQ(snapshot.device_memory, MiB(64));
  EXPECT_EQ(snapshot.spare_chunks, 0u);
  EXPECT_EQ(snapshot.stats.live.current, MiB(2) + Bytes(1000));
  ASSERT_EQ(snapshot.streams.size(), 2u);
  EXPECT_EQ(snapshot.streams[0].handle, 0u);
  EXPECT_EQ(snapshot.streams[1].number, 1u);
  EXPECT_EQ(snapshot.streams[1].handle, reinterpret_cast<uintptr_t>(stream.raw()));
  ASSERT_EQ(snapshot.pools.size(), 1u);
  ASSERT_EQ(snapshot.segments.size(), 2u);
  const bool small_first = snapshot.segments[0].stream == 1;
  const SnapshotSegment& small_segment = snapshot.segments[small_first ? 0 : 1];
  const SnapshotSegment& large_segment = snapshot.segments[small_first ? 1 : 0];

  ASSERT_EQ(small_segment.blocks.size(), 2u);
  EXPECT_EQ(small_segment.size_class, 0);
  EXPECT_EQ(small_segment.blocks[0].address, small);
  EXPECT_EQ(small_segment.blocks[0].size, Bytes(1024));
  EXPECT_EQ(small_segment.blocks[0].requested, Bytes(1000));
  EXPECT_EQ(small_segment.blocks[0].state, SnapshotBlockState::kLive);
  EXPECT_EQ(small_segment.blocks[1].state, SnapshotBlockState::kFree);
  EXPECT_EQ(small_segment.blocks[1].requested, Bytes());
  ASSERT_EQ(small_segment.chunks.size(), 1u);
  EXPECT_FALSE(small_segment.chunks[0].idle);

  // 3 MiB pending, 2 MiB live, 5 MiB free: five chunks, of which the last two are idle.
  ASSERT_EQ(large_segment.blocks.size(), 3u);
  EXPECT_EQ(large_segment.blocks[0].state, SnapshotBlockState::kPending);
  EXPECT_EQ(large_segment.blocks[0].requested, MiB(3));
  EXPECT_EQ(large_segment.blocks[1].address, live);
  EXPECT_EQ(large_segment.blocks[2].size, MiB(5));
  ASSERT_EQ(large_segment.chunks.size(), 5u);
  EXPECT_FALSE(large_segment.chunks[2].idle);
  EXPECT_TRUE(large_segment.chunks[3].idle);
  EXPECT_EQ(large_segment.chunks[4].address, large_segment.address + MiB(8));

  // Each allocation here was preceded by a map of what it lacked.
  std::string kinds;
  for (const SnapshotEvent& event : snapshot.events) kinds += "afpsumoMU"[static_cast<int>(event.kind)];
  EXPECT_EQ(kinds, "MaMaMaMafmp");
  EXPECT_EQ(snapshot.events[9].label, "here");
  EXPECT_EQ(snapshot.events[10].other, 1u);
  EXPECT_GT(snapshot.events[10].time_us, 0u);
  EXPECT_LE(snapshot.events[10].time_us, snapshot.time_us);
}

TEST_F(SnapshotTest, PinnedChunksAreNotIdle) {
  Start();
  const DeviceAddress block = Alloc(MiB(4));
  ASSERT_EQ(allocator_->Pin(block, MiB(2)), absl::OkStatus());
  Free(block);
  Snapshot snapshot = allocator_->TakeSnapshot();
  ASSERT_EQ(snapshot.segments.size(), 1u);
  ASSERT_EQ(snapshot.segments[0].chunks.size(), 2u);
  EXPECT_FALSE(snapshot.segments[0].chunks[0].idle) << "wholly free, and nobody else may have it";
  EXPECT_TRUE(snapshot.segments[0].chunks[1].idle);
  EXPECT_EQ(snapshot.stats.idle.current, MiB(2));
  ASSERT_EQ(allocator_->Unpin(block, MiB(2)), absl::OkStatus());
  EXPECT_TRUE(allocator_->TakeSnapshot().segments[0].chunks[0].idle);
}

TEST_F(SnapshotTest, AnEmptyAllocatorHasOne) {
  Start();
  const Snapshot snapshot = allocator_->TakeSnapshot();
  EXPECT_TRUE(snapshot.segments.empty());
  EXPECT_THAT(ToJson(snapshot), StartsWith("{\"format\":\"expanse-snapshot-1.0\",\"time_us\":"));
  EXPECT_THAT(ToJson(snapshot), HasSubstr("\"segments\":[],\"events\":[]}"));
  EXPECT_THAT(ToPyTorchPickle(snapshot), HasSubstr("device_traces"));
}

}  // namespace
}  // namespace expanse
