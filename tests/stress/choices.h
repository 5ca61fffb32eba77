// Where a random program gets its choices from.

#ifndef EXPANSE_TESTS_STRESS_CHOICES_H_
#define EXPANSE_TESTS_STRESS_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <random>

namespace expanse::stress {

class Choices {
 public:
  virtual ~Choices() = default;
  // A number below `n`, which is above 0.
  virtual uint64_t Below(uint64_t n) = 0;
  // Whether there are no more, and the program should end. Below then answers 0.
  [[nodiscard]] virtual bool exhausted() const = 0;
};

// Never exhausted; the same seed gives the same choices everywhere.
class SeededChoices final : public Choices {
 public:
  explicit SeededChoices(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) override { return engine_() % n; }
  [[nodiscard]] bool exhausted() const override { return false; }

 private:
  std::mt19937_64 engine_;
};

// What a fuzzer says: as many bytes a choice as `n` needs. The bytes must outlive it.
class ByteChoices final : public Choices {
 public:
  ByteChoices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint64_t Below(uint64_t n) override {
    uint64_t value = 0;
    for (uint64_t most = n - 1; most > 0 && used_ < size_; most >>= 8) value = value << 8 | data_[used_++];
    return value % n;
  }
  [[nodiscard]] bool exhausted() const override { return used_ == size_; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace expanse::stress

#endif  // EXPANSE_TESTS_STRESS_CHOICES_H_
