// Runs a fuzz target without libFuzzer: over each file of a corpus, over truncations of it, and over copies with bits
// flipped. Not a search, but it shows on every build that what the fuzzers found stays fixed.
//
//   fuzz_x DIRECTORY [SEED]

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the address sanitizer, which ends the process without a signal.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr size_t kMostTruncations = 512;  // of one file
constexpr size_t kFlippedCopies = 2000;   // of one file
constexpr size_t kMostFlips = 4;          // in one copy

using Data = std::vector<uint8_t>;

// What is running, told when the process dies of it.
char current[512] = "nothing";

void TellCurrent() { std::fprintf(stderr, "while running: %s\n", current); }

void OnSignal(int number) {
  TellCurrent();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// The copy is of exactly that size, so that the sanitizer sees a read past its end.
void Run(const Data& data) {
  Data copy(data);
  copy.shrink_to_fit();
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

uint64_t RunFile(const std::string& path, uint64_t seed) {
  std::ifstream file(path, std::ios::binary);
  const Data whole((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::snprintf(current, sizeof current, "%s", path.c_str());
  Run(whole);
  uint64_t runs = 1;

  const size_t step = whole.size() / kMostTruncations + 1;
  for (size_t length = 0; length < whole.size(); length += step, ++runs) {
    std::snprintf(current, sizeof current, "%s cut to %zu bytes", path.c_str(), length);
    Run(Data(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  if (whole.empty()) return runs;

  std::mt19937_64 random(seed);
  for (size_t i = 0; i < kFlippedCopies; ++i, ++runs) {
    std::snprintf(current, sizeof current, "%s, seed %llu, flipped copy %zu", path.c_str(),
                  static_cast<unsigned long long>(seed), i);
    Data copy = whole;
    for (size_t flips = 1 + random() % kMostFlips; flips > 0; --flips) {
      copy[random() % copy.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    }
    Run(copy);
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s DIRECTORY [SEED]\n", argv[0]);
    return 2;
  }
  const uint64_t seed = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(TellCurrent);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(number, OnSignal);

  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    std::fprintf(stderr, "%s: no corpus there: %s\n", argv[1],
                 error ? error.message().c_str() : "the directory is empty");
    return 1;
  }
  std::sort(paths.begin(), paths.end());
  uint64_t runs = 0;
  for (const std::string& path : paths) runs += RunFile(path, seed);
  std::printf("%llu runs over %zu files, seed %llu\n", static_cast<unsigned long long>(runs), paths.size(),
              static_cast<unsigned long long>(seed));
  return 0;
}
