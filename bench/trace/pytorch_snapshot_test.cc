#include "bench/trace/pytorch_snapshot.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bench/trace/base_format.h"
#include "bench/trace/pickle_values_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// pickle.dumps(snapshot, protocol) of this snapshot, for protocols 2 and 4. Protocols 3 and 5 differ in the second byte
// alone.
//   {'segments': [
//      {'device': 0, 'address': 2048, 'total_size': 2097152, 'stream': 0, 'segment_type': 'small',
//       'is_expandable': False, 'blocks': [
//         {'address': 2048, 'size': 512, 'requested_size': 300, 'state': 'active_allocated', 'frames': []},
//         {'address': 2560, 'size': 1536, 'requested_size': 0, 'state': 'inactive', 'frames': []}]},
//      {'device': 0, 'address': 16384, 'total_size': 2097152, 'stream': 0, 'segment_type': 'small',
//       'is_expandable': False, 'blocks': [
//         {'address': 16384, 'size': 5120, 'requested_size': 5000, 'state': 'active_pending_free', 'frames': []}]}],
//    'device_traces': [[
//      {'action': 'free_completed', 'addr': 4096, 'size': 700, 'stream': 0, 'time_us': 1, 'frames': []},
//      {'action': 'segment_alloc', 'addr': 8192, 'size': 2097152, 'stream': 0},
//      {'action': 'alloc', 'addr': 8192, 'size': 1000, 'stream': 94487466655008, 'frames': []},
//      {'action': 'alloc', 'addr': 16384, 'size': 5000, 'stream': 0},
//      {'action': 'free_requested', 'addr': 8192, 'size': 1000, 'stream': 94487466655008},
//      {'action': 'oom', 'device_free': 123, 'size': 1048576, 'stream': 0},
//      {'action': 'free_completed', 'addr': 8192, 'size': 1000, 'stream': 94487466655008}], []],
//    'allocator_settings': {'expandable_segments': False}}
constexpr const char* kProtocol2 =
    "80027d71002858080000007365676d656e747371015d7102287d710328580600000064657669636571044b00580700000061646472657373"
    "71054d0008580a000000746f74616c5f73697a6571064a00002000580600000073747265616d71074b00580c0000007365676d656e745f74"
    "79706571085805000000736d616c6c7109580d00000069735f657870616e6461626c65710a895806000000626c6f636b73710b5d710c287d"
    "710d2868054d0008580400000073697a65710e4d0002580e0000007265717565737465645f73697a65710f4d2c0158050000007374617465"
    "711058100000006163746976655f616c6c6f6361746564711158060000006672616d657371125d7113757d71142868054d000a680e4d0006"
    "680f4b0068105808000000696e616374697665711568125d71167565757d71172868044b0068054d004068064a0000200068074b00680868"
    "09680a89680b5d71187d71192868054d0040680e4d0014680f4d8813681058130000006163746976655f70656e64696e675f66726565711a"
    "68125d711b75617565580d0000006465766963655f747261636573711c5d711d285d711e287d711f285806000000616374696f6e7120580e"
    "000000667265655f636f6d706c65746564712158040000006164647271224d0010680e4dbc0268074b00580700000074696d655f75737123"
    "4b0168125d7124757d7125286820580d0000007365676d656e745f616c6c6f63712668224d0020680e4a0000200068074b00757d71272868"
    "205805000000616c6c6f63712868224d0020680e4de80368078a0620bde293ef5568125d7129757d712a286820682868224d0040680e4d88"
    "1368074b00757d712b286820580e000000667265655f726571756573746564712c68224d0020680e4de80368078a0620bde293ef55757d71"
    "2d28682058030000006f6f6d712e580b0000006465766963655f66726565712f4b7b680e4a0000100068074b00757d713028682068216822"
    "4d0020680e4de80368078a0620bde293ef5575655d7131655812000000616c6c6f6361746f725f73657474696e677371327d713358130000"
    "00657870616e6461626c655f7365676d656e747371348973752e";
constexpr const char* kProtocol4 =
    "8004959f020000000000007d94288c087365676d656e7473945d94287d94288c06646576696365944b008c0761646472657373944d00088c"
    "0a746f74616c5f73697a65944a000020008c0673747265616d944b008c0c7365676d656e745f74797065948c05736d616c6c948c0d69735f"
    "657870616e6461626c6594898c06626c6f636b73945d94287d942868054d00088c0473697a65944d00028c0e7265717565737465645f7369"
    "7a65944d2c018c057374617465948c106163746976655f616c6c6f6361746564948c066672616d6573945d94757d942868054d000a680e4d"
    "0006680f4b0068108c08696e6163746976659468125d947565757d942868044b0068054d004068064a0000200068074b0068086809680a89"
    "680b5d947d942868054d0040680e4d0014680f4d881368108c136163746976655f70656e64696e675f667265659468125d94756175658c0d"
    "6465766963655f747261636573945d94285d94287d94288c06616374696f6e948c0e667265655f636f6d706c65746564948c046164647294"
    "4d0010680e4dbc0268074b008c0774696d655f7573944b0168125d94757d942868208c0d7365676d656e745f616c6c6f639468224d002068"
    "0e4a0000200068074b00757d942868208c05616c6c6f639468224d0020680e4de80368078a0620bde293ef5568125d94757d942868206828"
    "68224d0040680e4d881368074b00757d942868208c0e667265655f7265717565737465649468224d0020680e4de80368078a0620bde293ef"
    "55757d942868208c036f6f6d948c0b6465766963655f66726565944b7b680e4a0000100068074b00757d94286820682168224d0020680e4d"
    "e80368078a0620bde293ef5575655d94658c12616c6c6f6361746f725f73657474696e6773947d948c13657870616e6461626c655f736567"
    "6d656e7473948973752e";

struct Result {
  std::string text;  // the trace in the base format, or the error
  std::vector<std::string> warnings;
};

Result Read(const std::string& data, std::optional<DeviceOrdinal> device = std::nullopt) {
  Result result;
  const absl::StatusOr<Pickle> pickle = Pickle::Parse(data, "s");
  if (!pickle.ok()) return {std::string(pickle.status().message()), {}};
  const absl::StatusOr<Trace> trace =
      TraceFromPyTorchSnapshot(pickle->root(), data.size(), device, "s", result.warnings);
  if (!trace.ok()) return {std::string(trace.status().message()), result.warnings};
  const absl::StatusOr<std::string> text = FormatBaseFormat(*trace);
  result.text = text.ok() ? *text : text.status().ToString();
  return result;
}

std::string Entry(const std::string& action, int64_t addr, int64_t size) {
  return PickledDict({{"action", PickledString(action)},
                      {"addr", PickledInt(addr)},
                      {"size", PickledInt(size)},
                      {"stream", PickledInt(0)}});
}

std::string Snapshot(const std::string& device_traces, const std::string& segments = PickledList({})) {
  return Pickled(PickledDict({{"device_traces", device_traces}, {"segments", segments}}));
}

std::string OneDevice(const std::vector<std::string>& entries) { return Snapshot(PickledList({PickledList(entries)})); }

std::string Segment(const std::string& blocks) {
  return PickledDict(
      {{"device", PickledInt(0)}, {"address", PickledInt(8192)}, {"stream", PickledInt(0)}, {"blocks", blocks}});
}

TEST(PyTorchSnapshot, BecomesATraceFromEveryProtocol) {
  for (char protocol = 2; protocol <= 5; ++protocol) {
    std::string data = absl::HexStringToBytes(protocol < 4 ? kProtocol2 : kProtocol4);
    data[1] = protocol;
    const Result result = Read(data);
    EXPECT_EQ(result.text,
              "op,id,bytes,stream\n"
              "a,0,300,0\na,1,700,0\nm,prologue_end,,\n"
              "f,1,,0\na,2,1000,1\na,3,5000,0\nm,oom_1048576,,\nf,2,,1\n");
    EXPECT_THAT(result.warnings, IsEmpty());
  }
}

TEST(PyTorchSnapshot, TakesTheDeviceWithMostEventsOrTheOneAskedFor) {
  const std::string traces = PickledList(
      {PickledList({Entry("alloc", 512, 1)}), PickledList({Entry("alloc", 512, 2), Entry("alloc", 1024, 3)}),
       PickledList({}), PickledList({Entry("alloc", 512, 4), Entry("alloc", 1024, 5)})});
  const Result most = Read(Snapshot(traces));
  EXPECT_EQ(most.text, "op,id,bytes,stream\na,0,2,0\na,1,3,0\n");
  EXPECT_THAT(most.warnings,
              ElementsAre("s: took device 1 (2 events), left out device 0 (1 events), device 3 (2 events)",
                          HasSubstr("2 blocks are live after the last event, but 0")));
  EXPECT_EQ(Read(Snapshot(traces), DeviceOrdinal(0)).text, "op,id,bytes,stream\na,0,1,0\n");
  EXPECT_EQ(Read(Snapshot(traces), DeviceOrdinal(4)).text, "s: device 4, expected one of the 4 in device_traces");
  EXPECT_EQ(Read(Snapshot(traces), DeviceOrdinal(-1)).text, "s: device -1, expected one of the 4 in device_traces");
}

TEST(PyTorchSnapshot, SegmentsOfOtherDevicesAreNotItsPrologue) {
  const std::string block = PickledDict(
      {{"size", PickledInt(512)}, {"state", PickledString("active_allocated")}, {"requested_size", PickledInt(9)}});
  const std::string other = PickledDict({{"device", PickledInt(1)},
                                         {"address", PickledInt(8192)},
                                         {"stream", PickledInt(0)},
                                         {"blocks", PickledList({block})}});
  const std::string data = Snapshot(PickledList({PickledList({}), PickledList({})}), PickledList({other}));
  EXPECT_EQ(Read(data, DeviceOrdinal(0)).text, "op,id,bytes,stream\n");
  EXPECT_EQ(Read(data, DeviceOrdinal(1)).text, "op,id,bytes,stream\na,0,9,0\nm,prologue_end,,\n");
}

TEST(PyTorchSnapshot, ReadsBlocksOfBefore21WithoutAddress) {
  const std::string use =
      PickledDict({{"addr", PickledInt(8192)}, {"real_size", PickledInt(300)}, {"frames", PickledList({})}});
  const std::string blocks = PickledList({
      PickledDict({{"size", PickledInt(1024)}, {"state", PickledString("inactive")}}),
      PickledDict(
          {{"size", PickledInt(512)}, {"state", PickledString("active_allocated")}, {"history", PickledList({use})}}),
      PickledDict(
          {{"size", PickledInt(2048)}, {"state", PickledString("active_allocated")}, {"history", PickledList({})}}),
  });
  // The second block begins at 8192 + 1024: its free is the first that the trace says about it.
  const Result result =
      Read(Snapshot(PickledList({PickledList({Entry("free_completed", 9216, 300)})}), PickledList({Segment(blocks)})));
  EXPECT_EQ(result.text, "op,id,bytes,stream\na,0,300,0\na,1,2048,0\nm,prologue_end,,\nf,0,,0\n");
  EXPECT_THAT(result.warnings, testing::Contains(HasSubstr("1 live blocks do not say what was asked for")));
}

TEST(PyTorchSnapshot, ToleratesTheUnknownAndSaysSo) {
  const std::string odd = PickledDict({{"action", PickledString("defragment")}, {"colour", "N"}});
  const Result result = Read(OneDevice({odd, Entry("snapshot", 0, 0), Entry("segment_map", 4096, 2097152), odd,
                                        Entry("alloc", 512, 7), Entry("free_completed", 512, 7)}));
  EXPECT_EQ(result.text, "op,id,bytes,stream\na,0,7,0\nf,0,,0\n");
  EXPECT_THAT(result.warnings, ElementsAre("s: 2 keys not known here, ignored: 'colour'",
                                           "s: 2 actions not known here, ignored: 'defragment'"));
}

TEST(PyTorchSnapshot, SaysWhenNothingWasRecorded) {
  EXPECT_THAT(Read(OneDevice({})).warnings, ElementsAre(HasSubstr("no allocation was recorded on device 0")));
  const Result result =
      Read(Pickled(PickledDict({{"device_traces", PickledList({PickledList({Entry("alloc", 512, 7)})})}})));
  EXPECT_EQ(result.text, "op,id,bytes,stream\na,0,7,0\n");
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("no list of segments")));
}

TEST(PyTorchSnapshot, ErrorsNameThePlaceAndTheValue) {
  const auto problem = [](const std::string& value) { return Read(Pickled(value)).text; };
  EXPECT_THAT(problem(PickledList({})), HasSubstr("s: the snapshot: a list of 0 (of segments, perhaps"));
  EXPECT_THAT(problem("N"), Eq("s: the snapshot: None, expected a dict"));
  EXPECT_THAT(problem(PickledDict({})), Eq("s: device_traces: missing, expected a list"));
  EXPECT_THAT(problem(PickledDict({{"device_traces", PickledString("x")}})),
              Eq("s: device_traces: 'x', expected a list"));
  EXPECT_THAT(problem(PickledDict({{"device_traces", PickledList({})}})),
              Eq("s: device_traces: an empty list, expected one per device"));
  EXPECT_THAT(problem(PickledDict({{"device_traces", PickledList({"N"})}})),
              Eq("s: device_traces[0]: None, expected a list"));

  const auto entry = [](const std::string& value) { return Read(OneDevice({Entry("alloc", 512, 7), value})).text; };
  EXPECT_THAT(entry(PickledInt(3)), Eq("s: device_traces[0][1]: 3, expected a dict"));
  EXPECT_THAT(entry(PickledDict({})), Eq("s: device_traces[0][1].action: missing, expected a string"));
  EXPECT_THAT(entry(PickledDict({{"action", PickledInt(1)}})),
              Eq("s: device_traces[0][1].action: 1, expected a string"));
  EXPECT_THAT(entry(Entry("alloc", 512, -5)),
              Eq("s: device_traces[0][1].size: -5, expected a whole number of at least 1"));
  EXPECT_THAT(entry(Entry("alloc", 512, 0)),
              Eq("s: device_traces[0][1].size: 0, expected a whole number of at least 1"));
  EXPECT_THAT(entry(Entry("free_completed", -1, 5)),
              Eq("s: device_traces[0][1].addr: -1, expected a whole number of at least 1"));
  EXPECT_THAT(entry(PickledDict({{"action", PickledString("oom")}, {"size", PickledString("big")}})),
              Eq("s: device_traces[0][1].size: 'big', expected a whole number of at least 1"));
  EXPECT_THAT(
      entry(PickledDict({{"action", PickledString("alloc")}, {"size", PickledInt(1)}, {"addr", PickledInt(512)}})),
      Eq("s: device_traces[0][1].stream: missing, expected a whole number of at least 0"));
  EXPECT_THAT(entry(Entry("alloc", 1024, int64_t{1} << 62)),
              HasSubstr("s: event 1: allocates 4611686018427387904 bytes"));

  const auto segments = [](const std::string& value) {
    return Read(Snapshot(PickledList({PickledList({})}), value)).text;
  };
  EXPECT_THAT(segments("N"), Eq("s: segments: None, expected a list"));
  EXPECT_THAT(segments(PickledList({"N"})), Eq("s: segments[0]: None, expected a dict"));
  EXPECT_THAT(segments(PickledList({PickledDict({})})),
              Eq("s: segments[0].address: missing, expected a whole number of at least 1"));
  EXPECT_THAT(segments(PickledList({Segment("N")})), Eq("s: segments[0].blocks: None, expected a list"));
  EXPECT_THAT(segments(PickledList({Segment(PickledList({PickledDict({{"size", PickledInt(-1)}})}))})),
              Eq("s: segments[0].blocks[0].size: -1, expected a whole number of at least 1"));
  EXPECT_THAT(segments(PickledList({Segment(PickledList({PickledDict({{"size", PickledInt(1)}, {"state", "N"}})}))})),
              Eq("s: segments[0].blocks[0].state: None, expected a string"));
}

TEST(PyTorchSnapshot, TheLastOfDoubledKeysCounts) {
  const std::string entry = PickledDict({{"action", PickledString("alloc")},
                                         {"addr", PickledInt(512)},
                                         {"stream", PickledInt(0)},
                                         {"size", PickledInt(-5)},
                                         {"size", PickledInt(7)}});
  EXPECT_EQ(Read(OneDevice({entry})).text, "op,id,bytes,stream\na,0,7,0\n");
}

TEST(PyTorchSnapshot, EntriesSharedToSwellTheTraceAreRefused) {
  // One segment of many blocks, listed again and again by reference: a million blocks in some kilobytes.
  std::string blocks = "](";
  blocks += PickledDict({{"size", PickledInt(512)},
                         {"state", PickledString("active_allocated")},
                         {"requested_size", PickledInt(9)}}) +
            "\x94";
  for (int i = 0; i < 1000; ++i) blocks += std::string("h\0", 2);
  blocks += "e";
  std::string segments = "](" + Segment(blocks) + "\x94";
  for (int i = 0; i < 1000; ++i) segments += std::string("h\x01", 2);
  segments += "e";
  EXPECT_EQ(Read(Snapshot(PickledList({PickledList({})}), segments)).text,
            "s: more entries than the file has room for: its lists share one another");
}

}  // namespace
}  // namespace expanse::bench
