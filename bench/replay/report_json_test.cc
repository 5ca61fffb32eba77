#include "bench/replay/report_json.h"

#include <string>
#include <vector>

#include "bench/replay/test_traces.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace expanse::bench {
namespace {

using Json = nlohmann::json;

// What programs rely on.
const std::vector<std::string> kContractKeys = {
    "allocator",
    "capacity_bytes",
    "events",
    "peak_live_bytes",
    "peak_allocated_bytes",
    "peak_pending_bytes",
    "peak_reserved_bytes",
    "out_of_memory",
    "failed_at_event",
    "failed_allocations",
    "driver_calls",
    "driver_calls_per_mark",
    "modelled_driver_us",
    "measured_driver_us",
    "stall_us",
    "host_ns_per_pair",
    "chunks_created",
    "chunks_moved",
    "address_space_peak_bytes",
    "hazards",
    "smallest_capacity_bytes",
};

Json Report(const std::vector<ReplayResult>& results) {
  const Trace trace = TraceOf("m,step0,,\na,1,1000,0\na,2,24,1\nf,1,,0\n");
  return Json::parse(ReportJson(trace, {true, "a device", "default"}, results));
}

TEST(ReportJson, HasEveryKeyOfTheContractWithNullsWhereFiguresAreAbsent) {
  const Json report = Report({ReplayResult{}});
  ASSERT_EQ(report.at("results").size(), 1u);
  const Json& result = report.at("results").at(0);
  for (const std::string& key : kContractKeys) EXPECT_TRUE(result.contains(key)) << key;
  for (const char* key : {"failed_at_event", "failed_request_bytes", "failed_in_mark", "unused_at_failure_bytes",
                          "modelled_driver_us", "measured_driver_us", "stall_us", "host_ns_per_pair", "chunks_created",
                          "chunks_moved", "address_space_peak_bytes", "hazards", "smallest_capacity_bytes"}) {
    EXPECT_TRUE(result.at(key).is_null()) << key;
  }
  EXPECT_EQ(result.at("out_of_memory"), false);
  EXPECT_TRUE(result.at("driver_calls").is_object());
  EXPECT_TRUE(result.at("driver_calls_per_mark").is_array());
}

TEST(ReportJson, CarriesEveryFigure) {
  ReplayResult result;
  result.allocator = "expanse";
  result.capacity = GiB(80);
  result.events = 3;
  result.peak_live = Bytes(1);
  result.peak_allocated = Bytes(2);
  result.peak_pending = Bytes(3);
  result.peak_reserved = Bytes(4);
  result.out_of_memory = true;
  result.failed_at_event = 5;
  result.failed_request = Bytes(6);
  result.failed_in_mark = "step3";
  result.unused_at_failure = Bytes(7);
  result.failed_allocations = 8;
  result.driver_calls[static_cast<int>(EntryPoint::mem_create)] = 9;
  result.driver_calls[static_cast<int>(EntryPoint::mem_alloc)] = 10;
  result.marks = {{"step0", 0, 11, 12.5}, {"step1", 2, 13, std::nullopt}};
  result.modelled_driver_us = 14.5;
  result.measured_driver_us = 15.5;
  result.stall_us = 16.5;
  result.host_ns_per_pair = 17.5;
  result.chunks_created = 18;
  result.chunks_moved = 0;
  result.address_space_peak = Bytes(20);
  result.hazards = 0;
  result.smallest_capacity = Bytes(22);
  const Json json = Report({result}).at("results").at(0);
  EXPECT_EQ(json.at("allocator"), "expanse");
  EXPECT_EQ(json.at("capacity_bytes"), GiB(80).count());
  EXPECT_EQ(json.at("events"), 3);
  EXPECT_EQ(json.at("peak_live_bytes"), 1);
  EXPECT_EQ(json.at("peak_allocated_bytes"), 2);
  EXPECT_EQ(json.at("peak_pending_bytes"), 3);
  EXPECT_EQ(json.at("peak_reserved_bytes"), 4);
  EXPECT_EQ(json.at("out_of_memory"), true);
  EXPECT_EQ(json.at("failed_at_event"), 5);
  EXPECT_EQ(json.at("failed_request_bytes"), 6);
  EXPECT_EQ(json.at("failed_in_mark"), "step3");
  EXPECT_EQ(json.at("unused_at_failure_bytes"), 7);
  EXPECT_EQ(json.at("failed_allocations"), 8);
  EXPECT_EQ(json.at("driver_calls"), (Json{{"cuMemCreate", 9}, {"cuMemAlloc_v2", 10}}));
  EXPECT_EQ(json.at("driver_calls_per_mark"), (Json{11, 13}));
  EXPECT_EQ(json.at("marks").at(0).at("modelled_driver_us"), 12.5);
  EXPECT_TRUE(json.at("marks").at(1).at("modelled_driver_us").is_null());
  EXPECT_EQ(json.at("modelled_driver_us"), 14.5);
  EXPECT_EQ(json.at("measured_driver_us"), 15.5);
  EXPECT_EQ(json.at("stall_us"), 16.5);
  EXPECT_EQ(json.at("host_ns_per_pair"), 17.5);
  EXPECT_EQ(json.at("chunks_created"), 18);
  EXPECT_EQ(json.at("chunks_moved"), 0) << "a figure that is there may be 0";
  EXPECT_EQ(json.at("address_space_peak_bytes"), 20);
  EXPECT_EQ(json.at("hazards"), 0);
  EXPECT_EQ(json.at("smallest_capacity_bytes"), 22);
}

TEST(ReportJson, DescribesTraceAndDevice) {
  const Json report = Report({});
  EXPECT_EQ(report.at("trace").at("name"), "test.csv");
  EXPECT_EQ(report.at("trace").at("events"), 3);
  EXPECT_EQ(report.at("trace").at("peak_live_bytes"), 1024);
  EXPECT_EQ(report.at("trace").at("streams"), 2);
  EXPECT_EQ(report.at("device").at("kind"), "simulated");
  EXPECT_EQ(report.at("device").at("costs"), "default");
  EXPECT_TRUE(report.at("results").empty());
}

TEST(ReportJson, ReplacesWhatIsNoUtf8) {
  Trace trace = TraceOf("a,1,1,0\n");
  trace.name = "\xFF\xFE.csv";
  EXPECT_TRUE(Json::accept(ReportJson(trace, {}, {})));
}

}  // namespace
}  // namespace expanse::bench
