#include "core/recorder.h"

#include <string>

#include "core/allocator_fixture.h"
#include "gmock/gmock.h"

namespace expanse {
namespace {

using Kind = SnapshotEventKind;
using ::testing::HasSubstr;

RecordedEvent Event(Kind kind, uint64_t address, uint64_t bytes, uint32_t stream = 0, uint32_t other = 0) {
  return {address, Bytes(bytes), stream, other, kind};
}

TEST(Recorder, KeepsTheLatestEvents) {
  Recorder recorder(3);
  for (uint64_t i = 1; i <= 5; ++i) {
    recorder.Add(Event(Kind::kAllocate, 512 * i, i));
    ASSERT_EQ(recorder.CheckInvariants(), absl::OkStatus());
  }
  EXPECT_EQ(recorder.first(), 2u);
  EXPECT_EQ(recorder.end(), 5u);
  EXPECT_EQ(recorder.event(2).bytes, Bytes(3));
  EXPECT_EQ(recorder.event(4).bytes, Bytes(5));
}

TEST(Recorder, LabelsGoWithTheirMarks) {
  Recorder recorder(4);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(recorder.Mark("step" + std::to_string(i)), absl::OkStatus());
    if (i % 3 == 0) recorder.Add(Event(Kind::kAllocate, 512, 1));
    ASSERT_EQ(recorder.CheckInvariants(), absl::OkStatus());
  }
  EXPECT_EQ(recorder.label(recorder.event(recorder.end() - 2)), "step99");
}

TEST(Recorder, TimesNeverGoBackAndSurviveTheRingsEnd) {
  Recorder recorder(3 * Recorder::kEventsPerTime);
  const auto begin = std::chrono::system_clock::now();
  for (uint64_t i = 0; i < 20 * Recorder::kEventsPerTime + 7; ++i) recorder.Add(Event(Kind::kAllocate, 512, 1));
  ASSERT_EQ(recorder.CheckInvariants(), absl::OkStatus());
  EXPECT_GE(recorder.time(recorder.first()), begin);
  EXPECT_LE(recorder.time(recorder.end() - 1), std::chrono::system_clock::now());
}

TEST(Recorder, OffItKeepsNothing) {
  Recorder recorder(0);
  recorder.Add(Event(Kind::kAllocate, 512, 1));
  EXPECT_EQ(recorder.end(), 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder.Mark("step0")));
  EXPECT_EQ(recorder.CheckInvariants(), absl::OkStatus());
}

TEST(Recorder, LabelsThatATraceCannotHoldAreRefused) {
  Recorder recorder(4);
  for (const std::string label : {"", "a,b", "#1", "two\nlines", " begin", "end ", "tab\t", "\x7f", "\xff", "\xc3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(recorder.Mark(label))) << label;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(recorder.Mark(std::string(Recorder::kLongestLabel + 1, 'x'))));
  EXPECT_THAT(recorder.Mark("a\xff").message(), HasSubstr("'a\\xff'")) << "the error itself is text";
  EXPECT_EQ(recorder.Mark(std::string(Recorder::kLongestLabel, 'x')), absl::OkStatus());
  EXPECT_EQ(recorder.Mark("step 1/\xc3\xa4"), absl::OkStatus());
  EXPECT_EQ(recorder.end(), 2u);
}

TEST(FormatRecording, WritesEveryKindThatATraceHas) {
  Recorder recorder(20);
  recorder.Add(Event(Kind::kMap, 0, 1 << 21));
  recorder.Add(Event(Kind::kAllocate, 512, 100));
  ASSERT_EQ(recorder.Mark("step0"), absl::OkStatus());
  recorder.Add(Event(Kind::kAllocate, 1024, 200, 1));
  recorder.Add(Event(Kind::kUse, 512, 100, 0, 2));
  recorder.Add(Event(Kind::kFreePending, 512, 100, 0, 0));
  recorder.Add(Event(Kind::kOutOfMemory, 0, 12345));
  recorder.Add(Event(Kind::kSettle, 512, 100));
  recorder.Add(Event(Kind::kAllocate, 512, 300));
  recorder.Add(Event(Kind::kFree, 1024, 200, 1, 2));
  EXPECT_EQ(FormatRecording(recorder, {RecordedBlock{DeviceAddress(512), Bytes(300), 0}}),
            "op,id,bytes,stream\na,0,100,0\nm,step0,,\na,1,200,1\nu,0,,2\nf,0,,0\nm,oom_12345,,\na,2,300,0\nf,1,,2\n");
}

TEST(FormatRecording, BlocksFromBeforeTheWindowAreAllocatedFirst) {
  Recorder recorder(3);
  // Before the window: blocks at 1024 (freed in it), 512 (live), 2048 (freed before), 4096 (freed, then another there).
  for (const uint64_t address : {512, 1024, 2048, 4096}) recorder.Add(Event(Kind::kAllocate, address, address + 1, 1));
  recorder.Add(Event(Kind::kFree, 2048, 2049, 1, 1));
  recorder.Add(Event(Kind::kFree, 4096, 4097, 1, 1));
  recorder.Add(Event(Kind::kFree, 1024, 1025, 1, 3));
  recorder.Add(Event(Kind::kAllocate, 4096, 7));
  EXPECT_EQ(FormatRecording(recorder, {RecordedBlock{DeviceAddress(4096), Bytes(7), 0},
                                       RecordedBlock{DeviceAddress(512), Bytes(513), 1}}),
            "op,id,bytes,stream\na,0,513,1\na,1,1025,1\na,2,4097,1\nm,prologue_end,,\nf,2,,1\nf,1,,3\na,3,7,0\n");
}

class RecorderTest : public AllocatorTest {
 protected:
  void StartRecording(uint64_t events) {
    AllocatorOptions options;
    options.record_events = events;
    Start(SmallDevice(), options);
  }
};

TEST_F(RecorderTest, TheAllocatorRecordsWhatItIsAskedFor) {
  StartRecording(100);
  const StreamHandle stream = NewStream();
  const DeviceAddress first = Alloc(Bytes(1000));
  EXPECT_EQ(allocator_->Mark("step0"), absl::OkStatus());
  const DeviceAddress second = Alloc(MiB(3), stream);
  RecordUse(first, stream);
  Free(first);
  EXPECT_TRUE(absl::IsResourceExhausted(AllocFails(MiB(64))));
  Free(second, StreamHandle());
  const absl::StatusOr<std::string> recording = allocator_->GetRecording();
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(*recording,
            "op,id,bytes,stream\na,0,1000,0\nm,step0,,\na,1,3145728,1\nu,0,,1\nf,0,,0\nm,oom_67108864,,\nf,1,,0\n");
}

TEST_F(RecorderTest, AStreamThatGetsTheHandleOfAnotherIsAnother) {
  StartRecording(100);
  const StreamHandle first = NewStream();
  Free(Alloc(Bytes(1), first));
  EXPECT_EQ(allocator_->OnStreamDestroyed(first), absl::OkStatus());
  Free(Alloc(Bytes(2), first));
  EXPECT_THAT(*allocator_->GetRecording(), HasSubstr("a,0,1,1\nf,0,,1\na,1,2,2\nf,1,,2\n"));
}

TEST_F(RecorderTest, ARingThatNoHostHasRoomForIsRefused) {
  Start();
  AllocatorOptions options;
  options.record_events = AllocatorOptions::kMostRecordedEvents + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Allocator::Create(sim_->driver(), options).status()));
}

TEST_F(RecorderTest, WithoutTheOptionNothingIsRecorded) {
  Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_->GetRecording().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_->Mark("step0")));
}

}  // namespace
}  // namespace expanse
