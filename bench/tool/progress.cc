#include "bench/tool/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace expanse::tool {
namespace {

constexpr std::chrono::milliseconds kQuiet{1000}, kRedraw{100};
constexpr int kCells = 30;

}  // namespace

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::Update(uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const Clock::time_point now = Clock::now();
  if (now - start_ < kQuiet || now - drawn_ < kRedraw) return;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int full = static_cast<int>(part * kCells);
  std::fprintf(stderr, "\r\033[K%s [%s%s] %3.0f %%", label_.c_str(), std::string(full, '#').c_str(),
               std::string(kCells - full, '.').c_str(), part * 100);
  std::fflush(stderr);
  drawn_ = now;
  visible_ = true;
}

}  // namespace expanse::tool
