#include "core/pickle_writer.h"

#include <cstring>
#include <utility>

namespace expanse {
namespace {

void AppendLittleEndian(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
}

}  // namespace

PickleWriter::PickleWriter() : bytes_("\x80\x02") {}

void PickleWriter::BeginDict() {
  bytes_ += "}(";
  open_.push_back(Open{'u'});
}

void PickleWriter::BeginList() {
  bytes_ += "](";
  open_.push_back(Open{'e'});
}

void PickleWriter::End() {
  bytes_ += open_.back().store;
  open_.pop_back();
  Stored();
}

void PickleWriter::Stored() {
  if (open_.empty() || ++open_.back().values < kBatch) return;
  bytes_ += open_.back().store;
  bytes_ += '(';
  open_.back().values = 0;
}

void PickleWriter::Number(int64_t value) {
  if (value >= 0 && value < 256) {
    bytes_ += 'K';
    AppendLittleEndian(bytes_, static_cast<uint64_t>(value), 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    bytes_ += 'J';
    AppendLittleEndian(bytes_, static_cast<uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    AppendLittleEndian(bytes_, static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::Int(int64_t value) {
  Number(value);
  Stored();
}

void PickleWriter::Pair(int64_t first, int64_t second) {
  Number(first);
  Number(second);
  bytes_ += '\x86';
  Stored();
}

void PickleWriter::Float(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bytes_ += 'G';
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i));
  Stored();
}

void PickleWriter::Text(std::string_view text) {
  bytes_ += 'X';
  AppendLittleEndian(bytes_, text.size(), 4);
  bytes_ += text;
}

void PickleWriter::String(std::string_view value) {
  Text(value);
  Stored();
}

void PickleWriter::Bool(bool value) {
  bytes_ += value ? '\x88' : '\x89';
  Stored();
}

void PickleWriter::None() {
  bytes_ += 'N';
  Stored();
}

std::string PickleWriter::Finish() && {
  bytes_ += '.';
  return std::move(bytes_);
}

}  // namespace expanse
