#include "core/out_of_memory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace expanse {
namespace {

using ::testing::HasSubstr;

Shortage Example() {
  Shortage shortage;
  shortage.asked = Bytes(1'000'000);
  shortage.rounded = Bytes(1'000'448);
  shortage.live = MiB(70);
  shortage.allocated = MiB(71);
  shortage.pending = MiB(3);
  shortage.pending_on = {"stream 0x10", "stream 0x20"};
  shortage.idle = MiB(5);
  shortage.partly_used = MiB(9);
  shortage.largest_free = KiB(100);
  shortage.reserved = MiB(88);
  shortage.needed = MiB(4);
  shortage.missing = MiB(2);
  shortage.device_free = MiB(1);
  shortage.device_total = MiB(96);
  shortage.other_allocators_asked = 1;
  shortage.callback_rounds = 2;
  shortage.waits = 5;
  shortage.chunk_size = MiB(2);
  shortage.granularity = MiB(2);
  shortage.handles_left = 1234;
  shortage.addresses_left = GiB(7);
  shortage.reason = "4 chunks short";
  return shortage;
}

TEST(OutOfMemory, SaysEverythingThatIsKnown) {
  const absl::Status status = OutOfMemoryError(Example());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string text(status.message());
  for (const char* part : {"1000000 bytes",
                           "1000448 bytes",
                           "live 70.00 MiB",
                           "allocated 71.00 MiB",
                           "pending 3.00 MiB",
                           "stream 0x10, stream 0x20",
                           "idle 5.00 MiB",
                           "pinned 0 bytes",
                           "9.00 MiB",
                           "88.00 MiB",
                           "100.00 KiB",
                           "1.00 MiB",
                           "96.00 MiB",
                           "limit none",
                           "1234 handles",
                           "7.00 GiB",
                           "4 chunks short",
                           "missing 2.00 MiB",
                           "other allocators 1 times",
                           "callbacks 2 times",
                           "waits 5"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(OutOfMemory, NamesTheSettingThatWouldHaveHelped) {
  Shortage shortage = Example();
  shortage.limit = MiB(88);
  shortage.device_free = GiB(1);
  EXPECT_THAT(HelpfulSetting(shortage), HasSubstr("a limit higher by 4.00 MiB"));
  shortage = Example();
  shortage.chunk_size = MiB(16);
  EXPECT_THAT(HelpfulSetting(shortage), HasSubstr("smaller chunk_size"));
  shortage = Example();
  shortage.handles_left = 0;
  EXPECT_THAT(HelpfulSetting(shortage), HasSubstr("larger chunk_size"));
  shortage = Example();
  shortage.needed = Bytes();
  shortage.addresses_left = Bytes();
  EXPECT_THAT(HelpfulSetting(shortage), HasSubstr("larger address budget"));
}

TEST(OutOfMemory, NamesNoSettingWhereNoneWouldHelp) { EXPECT_EQ(HelpfulSetting(Example()), ""); }

}  // namespace
}  // namespace expanse
