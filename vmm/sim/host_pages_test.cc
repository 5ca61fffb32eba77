#include "vmm/sim/host_pages.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "vmm/sim/fault_probe.h"

namespace expanse::sim {
namespace {

TEST(HostPages, ReservationsAreAligned) {
  for (const Bytes alignment : {KiB(4), MiB(2), GiB(1)}) {
    const auto at = ReservePages(MiB(4), alignment);
    ASSERT_TRUE(at.has_value());
    EXPECT_TRUE(IsMultipleOf(Bytes(at->value()), alignment));
    ReleasePages({*at, MiB(4)});
  }
}

TEST(HostPages, AHintIsTakenExactlyOrNotAtAll) {
  const auto at = ReservePages(MiB(4), MiB(2));
  ASSERT_TRUE(at.has_value());
  EXPECT_FALSE(ReservePages(MiB(2), MiB(2), *at).has_value());
  ReleasePages({*at, MiB(4)});
  EXPECT_EQ(ReservePages(MiB(2), MiB(2), *at), at);
  ReleasePages({*at, MiB(2)});
}

TEST(HostPages, AFileIsReachedThroughEveryPlaceThatShowsIt) {
  auto file = SparseFile::Create("test");
  ASSERT_TRUE(file.has_value());
  const auto at = ReservePages(MiB(4), MiB(2));
  ASSERT_TRUE(at.has_value());
  const uint64_t offset = file->TakeOffset(MiB(2));
  EXPECT_NE(file->TakeOffset(KiB(4)), offset);
  ASSERT_TRUE(file->ShowPages({*at, MiB(2)}, offset, PROT_READ | PROT_WRITE));
  ASSERT_TRUE(file->ShowPages({*at + MiB(2), MiB(2)}, offset, PROT_READ));
  static_cast<char*>(at->ptr())[5] = 'x';
  EXPECT_EQ(static_cast<char*>((*at + MiB(2)).ptr())[5], 'x');
  char c = 0;
  ASSERT_TRUE(file->Read(offset + 5, &c, Bytes(1)));
  EXPECT_EQ(c, 'x');
  ASSERT_TRUE(file->Fill(offset, 7, MiB(2)));
  EXPECT_EQ(static_cast<char*>(at->ptr())[MiB(2).count() - 1], 7);
  file->Discard(offset, MiB(2));
  EXPECT_EQ(static_cast<char*>(at->ptr())[5], 0);
  ReleasePages({*at, MiB(4)});
}

TEST(HostPages, WritingFromABadAddressFails) {
  auto file = SparseFile::Create("test");
  ASSERT_TRUE(file.has_value());
  const uint64_t offset = file->TakeOffset(KiB(4));
  const auto hidden = ReservePages(KiB(4), KiB(4));
  ASSERT_TRUE(hidden.has_value());
  EXPECT_FALSE(file->Write(offset, hidden->ptr(), Bytes(16)));
  ReleasePages({*hidden, KiB(4)});
}

TEST(HostPages, WhatIsReservedOrHiddenFaults) {
  auto file = SparseFile::Create("test");
  ASSERT_TRUE(file.has_value());
  const auto at = ReservePages(MiB(2), MiB(2));
  ASSERT_TRUE(at.has_value());
  EXPECT_TRUE(FaultProbe::ReadFaults(at->ptr()));
  ASSERT_TRUE(file->ShowPages({*at, MiB(2)}, file->TakeOffset(MiB(2)), PROT_READ | PROT_WRITE));
  EXPECT_FALSE(FaultProbe::WriteFaults(at->ptr()));
  ASSERT_TRUE(ProtectPages({*at, MiB(2)}, PROT_READ));
  EXPECT_FALSE(FaultProbe::ReadFaults(at->ptr()));
  EXPECT_TRUE(FaultProbe::WriteFaults(at->ptr()));
  ASSERT_TRUE(HidePages({*at, MiB(2)}));
  EXPECT_TRUE(FaultProbe::ReadFaults(at->ptr()));
  ReleasePages({*at, MiB(2)});
}

TEST(HostPages, ForkedChildrenInheritNothing) {
  auto file = SparseFile::Create("test");
  ASSERT_TRUE(file.has_value());
  const auto at = ReservePages(MiB(2), MiB(2));
  ASSERT_TRUE(at.has_value());
  ASSERT_TRUE(file->ShowPages({*at, MiB(1)}, file->TakeOffset(MiB(1)), PROT_READ | PROT_WRITE));
  ASSERT_TRUE(file->ShowPages({*at + MiB(1), MiB(1)}, file->TakeOffset(MiB(1)), PROT_READ | PROT_WRITE));
  ASSERT_TRUE(HidePages({*at + MiB(1), MiB(1)}));
  const pid_t child = fork();
  if (child == 0) {
    // Not even the addresses are taken: both halves can be mapped anew.
    _exit(ReservePages(MiB(2), MiB(2), *at) == at ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ReleasePages({*at, MiB(2)});
}

}  // namespace
}  // namespace expanse::sim
