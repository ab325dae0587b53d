// Downloads a model of a hub into the cache that the environment names, without any check of its family, and with
// patience as short as tests need.
//   pull_tool NAME [--delay-us N] [--attempts N] [--workers N] [--silence S] [--refuse TEXT]
// Standard output: the snapshot. Exit status 2 with the reason on standard error, 3 if a signal interrupted it.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

#include "core/base/start_error.h"
#include "hub/pull.h"

int main(int argc, char** argv) {
  using namespace quire;
  std::string name;
  std::string refuse;
  std::int64_t delay_us = 1000;
  std::int64_t silence_s = 5;
  int attempts = 6;
  unsigned workers = 4;
  CLI::App app("pulls a model");
  app.add_option("name", name)->required();
  app.add_option("--delay-us", delay_us);
  app.add_option("--attempts", attempts);
  app.add_option("--workers", workers);
  app.add_option("--silence", silence_s);
  app.add_option("--refuse", refuse);
  CLI11_PARSE(app, argc, argv);

  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
  std::stop_source stop;
  std::thread([&] {
    int signal = 0;
    sigwait(&interrupts, &signal);
    stop.request_stop();
  }).detach();

  try {
    const auto parsed = hub::parse_model_name(name);
    if (!parsed) throw StartError(parsed.error().message);
    hub::Settings settings = hub::read_settings(environ, "", false);
    settings.first_delay = std::chrono::microseconds(delay_us);
    settings.silence = std::chrono::seconds(silence_s);
    settings.max_attempts = attempts;
    settings.num_workers = workers;
    hub::Progress progress;
    const hub::CheckSettings check = [&](const std::filesystem::path&) {
      if (!refuse.empty()) throw StartError(refuse);
    };
    std::cout << hub::pull(settings, *parsed, check, progress, stop.get_token()).snapshot.string() << std::endl;
    std::quick_exit(0);  // the thread above waits for ever
  } catch (const hub::PullStopped&) {
    std::cerr << "interrupted" << std::endl;
    std::quick_exit(3);
  } catch (const StartError& error) {
    std::cerr << error.what() << std::endl;
    std::quick_exit(2);
  }
}
