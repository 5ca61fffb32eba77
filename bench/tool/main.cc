// expanse: replays, compares, converts and generates allocation traces.

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/tool/command.h"
#include "bench/tool/flags.h"
#include "bench/tool/output.h"
#include "bench/tool/suggest.h"

namespace expanse::tool {
namespace {

struct Entry {
  const char* name;
  const char* help;
  std::unique_ptr<Command> (*make)();  // null: a later version has it
};

constexpr Entry kEntries[] = {
    {"replay", "Replay a trace with one allocator", MakeReplayCommand},
    {"compare", "Replay a trace with several allocators, in one table", MakeCompareCommand},
    {"fit", "Find the smallest capacity that runs a trace, per allocator", MakeFitCommand},
    {"convert", "Convert a trace or a PyTorch memory snapshot", MakeConvertCommand},
    {"generate", "Generate a trace", MakeGenerateCommand},
    {"inspect", "Say what a trace or snapshot holds", MakeInspectCommand},
    {"merge", "Make one report out of many (comes in a later version)", nullptr},
    {"doctor", "Say what driver and device can do (comes in a later version)", nullptr},
};

int Fail(const std::string& command, const std::string& message) {
  const std::string name = command.empty() ? "expanse" : absl::StrCat("expanse ", command);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message.c_str());
  return kError;
}

struct Declared {
  const Entry* entry;
  CLI::App* app;
  std::unique_ptr<Command> command;
};

// The command that the user means, whether or not parsing it succeeded; null where there is none.
const Declared* Chosen(const std::vector<Declared>& commands) {
  for (const Declared& declared : commands) {
    if (declared.app->parsed()) return &declared;
  }
  return nullptr;
}

int NoCommand(const CLI::App& app, const std::vector<std::string>& commands) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kError;
  }
  const std::string& word = extras.front();
  const bool option = word.rfind('-', 0) == 0;
  return Fail("", absl::StrCat("unknown ", option ? "option" : "command", " '", word, "'",
                               DidYouMean(word, option ? OptionNames(app) : commands), "\nTry 'expanse --help'."));
}

int Main(int argc, char** argv) {
  CLI::App app("Replays GPU allocation traces with Expanse and other allocators, without a GPU or with one.",
               "expanse");
  app.set_version_flag("--version", "expanse " EXPANSE_VERSION);
  app.allow_extras();
  app.require_subcommand(0, 1);
  std::vector<Declared> commands;
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    CLI::App* command_app = app.add_subcommand(entry.name, entry.help);
    // Unknown options are ours to report, with the nearest known one.
    command_app->allow_extras();
    commands.push_back({&entry, command_app, entry.make == nullptr ? nullptr : entry.make()});
    if (commands.back().command != nullptr) commands.back().command->Declare(*command_app);
    names.emplace_back(entry.name);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ArgumentMismatch& error) {
    // Every option takes one value or none, and at most once.
    const std::string what = error.what();
    const std::string option = what.substr(0, what.find(':'));
    const char* problem = absl::StrContains(what, "At Most") ? ": given several times, expected once at most"
                                                             : ": expected a value after it";
    const Declared* chosen = Chosen(commands);
    return Fail(chosen == nullptr ? "" : chosen->entry->name, absl::StrCat(option, problem));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? kDone : kError;  // --help, --version
    const Declared* chosen = Chosen(commands);
    return Fail(chosen == nullptr ? "" : chosen->entry->name, error.what());
  }
  const Declared* chosen = Chosen(commands);
  if (chosen == nullptr) return NoCommand(app, names);
  if (chosen->command == nullptr) return Fail(chosen->entry->name, "comes in a later version");
  // A kind of `generate` is a command within the command, which looks at its own arguments.
  if (chosen->app->get_subcommands([](CLI::App*) { return true; }).empty()) {
    if (absl::Status status = CheckNoExtras(*chosen->app); !status.ok()) {
      return Fail(chosen->entry->name,
                  absl::StrCat(std::string(status.message()), "\nTry 'expanse ", chosen->entry->name, " --help'."));
    }
  }
  const absl::StatusOr<ExitStatus> status = chosen->command->Run();
  return status.ok() ? *status : Fail(chosen->entry->name, std::string(status.status().message()));
}

}  // namespace
}  // namespace expanse::tool

int main(int argc, char** argv) {
  // A reader that goes away shows as EPIPE, which is handled where output is written.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return expanse::tool::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "expanse: %s\n", error.what());
    return expanse::tool::kError;
  }
}
