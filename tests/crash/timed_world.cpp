// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/timed_world.h"

#include <algorithm>

#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "support/hooks.h"

namespace lccfs::crash {

using test::need;

namespace {

constexpr auto for_ever = Nanoseconds::max();
constexpr seconds watch_time_out{30};
/// Nobody who was away for less may be fenced.
constexpr seconds least_absence{60};
/// Who is back needs so long to set its watches again.
constexpr seconds notices_within{10};

std::string text_of(Nanoseconds time) { return std::to_string(std::chrono::floor<seconds>(time).count()) + " s"; }

}  // namespace

TimedWorld::TimedWorld(std::uint64_t seed) : random_(seed) {
  ScriptedCluster::Options options;
  options.clock = &clock_;
  options.dead_clients_watch = true;
  cluster_ = ScriptedCluster::make(options);
  MakeVolumeOptions volume;
  volume.object_size_bytes = 64U << 10;
  need(make_volume(*cluster_->new_client(), clock_, volume));
}

TimedWorld::~TimedWorld() {
  for (auto& thread : threads_) thread.join();
}

// ---- parties

/// Its clock tells other times than others': days apart on the wall, where it may run backwards.
TimedWorld::Party& TimedWorld::add(const std::string& kind) {
  constexpr int rates[] = {1, 1, 0, -1, 3};
  test::SimulatedClock::Options clock;
  clock.ahead = seconds(random_() % 1'000'000);
  clock.wall_seconds += static_cast<std::int64_t>(random_() % 2'000'000) - 1'000'000;
  clock.wall_rate = rates[random_() % std::size(rates)];
  return parties_.emplace_back(kind + std::to_string(parties_.size()), time_, clock);
}

TimedWorld::Party& TimedWorld::mount() {
  auto& party = add("mount");
  party.client = cluster_->new_client();
  party.mount = need(mount_volume(party.client, party.clock, {}));
  get_ready(party);
  return party;
}

TimedWorld::Party& TimedWorld::collector() {
  auto& party = add("collector");
  party.collector = std::make_unique<test::TestCollector>(*cluster_, party.clock);
  get_ready(party);
  return party;
}

void TimedWorld::get_ready(Party& party) {
  cluster_->with_objects([&](scripted::Objects& objects) {
    for (const auto& [key, value] : objects.metadata()[format::super_object].keys) {
      const auto id = format::parse_instance_key(key);
      if (!id || need(format::decode<format::InstanceRecord>(value)).identity != party.store().identity()) continue;
      party.session = format::session_object(*id);
    }
  });
  party.unheard = {{format::super_object, Nanoseconds(0)}, {party.session, Nanoseconds(0)}};
  party.store().set_hook([this, &party](const StepInfo& info) {
    return info.kind == StepKind::fence ? judge_fence(party, info) : Fault{};
  });
}

// ---- what happens when

TimedWorld::What TimedWorld::only(const std::string& object) {
  return [object](const std::string& candidate) { return candidate == object; };
}

void TimedWorld::show_what_is_away() {
  std::vector<What> away;
  for (const auto& outage : outages_) {
    if (outage.span.end == for_ever) away.push_back(outage.what);
  }
  cluster_->set_away([away](const std::string& object) {
    return std::ranges::any_of(away, [&](const What& what) { return what(object); });
  });
}

void TimedWorld::outage(Nanoseconds from, Nanoseconds length, const What& what) {
  time_.at(from, [this, length, what] {
    account();
    const auto number = outages_.size();
    {
      const std::lock_guard lock(mutex_);
      outages_.push_back({{now(), for_ever}, what});
    }
    show_what_is_away();
    time_.at(now() + length, [this, number, length, what] {
      account();
      {
        const std::lock_guard lock(mutex_);
        outages_[number].span.end = now();
      }
      if (length > watch_time_out && what(ScriptedCluster::all_objects)) {
        for (auto& party : parties_) {
          if (party.dead) continue;
          auto tell = party.store().lapse_watches([](const std::string&) { return true; });
          time_.at(now() + std::chrono::milliseconds(random_() % 10'000), std::move(tell));
        }
      }
      show_what_is_away();
    });
  });
}

void TimedWorld::begin_absence(Party& party) {
  account();
  const std::lock_guard lock(mutex_);
  if (party.absences++ == 0) party.absent.push_back({now(), for_ever});
}

void TimedWorld::end_absence(Party& party) {
  account();
  const std::lock_guard lock(mutex_);
  if (--party.absences == 0) party.absent.back().end = now();
}

void TimedWorld::cut_off(Party& party, Nanoseconds from, Nanoseconds length) {
  time_.at(from, [this, &party, length] {
    begin_absence(party);
    party.store().set_cut_off(true);
    account();
    time_.at(now() + length, [this, &party] {
      end_absence(party);
      if (party.absences == 0) party.store().set_cut_off(false);
    });
  });
}

void TimedWorld::stop(Party& party, Nanoseconds from, Nanoseconds length) {
  time_.at(from, [this, &party, length] { party.clock.stop(); });
  time_.at(from + length, [this, &party] { party.clock.resume(); });
  cut_off(party, from, length);
}

void TimedWorld::declare_dead(Party& party) {
  {
    const std::lock_guard lock(mutex_);
    party.dead = true;
  }
  party.store().crash();
}

void TimedWorld::kill(Party& party, Nanoseconds at) {
  time_.at(at, [this, &party] {
    begin_absence(party);
    declare_dead(party);
    account();
  });
}

/// Counts for how long each party has not been heard at what it watches, and takes the watches of those for whom that
/// is too long; comes again when that may be so next.
void TimedWorld::account() {
  const auto passed = now() - accounted_;
  accounted_ = now();
  auto next = for_ever;
  for (auto& party : parties_) {
    for (auto& [object, unheard] : party.unheard) {
      const bool away = std::ranges::any_of(
          outages_, [&](const Outage& outage) { return outage.span.end == for_ever && outage.what(object); });
      if (party.absences == 0) unheard = Nanoseconds(0);
      if (party.absences == 0 || away || unheard >= watch_time_out) continue;
      unheard += passed;
      if (unheard >= watch_time_out) party.store().lapse_watches(only(object))();
      if (unheard < watch_time_out) next = std::min(next, watch_time_out - unheard);
    }
  }
  if (next != for_ever) time_.at(now() + next, [this] { account(); });
}

// ---- what is right

void TimedWorld::wrong(const std::string& what) {
  const std::lock_guard lock(mutex_);
  wrong_ += text_of(now()) + ": " + what + "\n";
}

bool TimedWorld::hits(const Outage& outage, const Party& party) {
  return outage.what(format::super_object) || outage.what(party.session);
}

/// For how long of that span the victim could be missed: its objects were there, and the fencer at work.
Nanoseconds TimedWorld::observable(const Party& fencer, const Party& victim, const Party::Span& span) const {
  std::vector<Party::Span> hidden = fencer.absent;
  for (const auto& outage : outages_) {
    if (hits(outage, victim)) hidden.push_back(outage.span);
  }
  std::ranges::sort(hidden, {}, &Party::Span::begin);
  auto seen = Nanoseconds(0);
  auto from = span.begin;
  const auto end = std::min(span.end, now());
  for (const auto& dark : hidden) {
    if (dark.begin >= end) break;
    seen += std::max(Nanoseconds(0), dark.begin - from);
    from = std::max(from, std::min(dark.end, end));
  }
  return seen + std::max(Nanoseconds(0), end - from);
}

Fault TimedWorld::judge_fence(Party& fencer, const StepInfo& info) {
  const auto victim =
      std::ranges::find_if(parties_, [&](Party& party) { return party.store().identity() == info.object; });
  if (victim == parties_.end()) return {};
  auto longest = Nanoseconds(0);
  {
    const std::lock_guard lock(mutex_);
    fenced_.insert(victim->name);
    for (const auto& span : victim->absent) {
      const bool is_news = span.end == for_ever || span.end + notices_within >= now();
      if (is_news) longest = std::max(longest, observable(fencer, *victim, span));
    }
  }
  if (longest < least_absence) {
    wrong(fencer.name + " fences " + victim->name + ", which it could not reach for " + text_of(longest));
  }
  return {};
}

std::list<TimedWorld::Pending>::iterator TimedWorld::begin_call(Party& party, const std::string& what,
                                                                Nanoseconds limit) {
  const std::lock_guard lock(mutex_);
  return calls_.insert(calls_.end(), {party, what, now(), limit});
}

void TimedWorld::end_call(std::list<Pending>::iterator call, const Error* error) {
  judge_wait(*call);
  bool is_out = false;
  {
    const std::lock_guard lock(mutex_);
    is_out = call->party.dead || fenced_.contains(call->party.name);
  }
  if (error != nullptr && !is_out) {
    wrong(call->party.name + ": " + call->what + ": " + describe(error->code) + ": " + error->context);
  }
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

bool TimedWorld::call(Party& party, const std::string& what, const std::function<Result<>()>& act) {
  const auto pending = begin_call(party, what);
  const auto result = act();
  end_call(pending, result ? nullptr : &result.error());
  return result.has_value();
}

std::optional<reclaim::PassReport> TimedWorld::pass(Party& party) {
  const auto pending = begin_call(party, "pass", longest_pass);
  auto report = party.collector->try_pass();
  end_call(pending, report ? nullptr : &report.error());
  return report ? std::optional(std::move(*report)) : std::nullopt;
}

/// What the store was away, or the caller itself, does not count; and after that whoever waits begins to count anew.
void TimedWorld::judge_wait(const Pending& call) {
  auto allowed = call.limit;
  {
    const std::lock_guard lock(mutex_);
    const auto allow = [&](const Party::Span& span) {
      const auto end = std::min(span.end, now());
      if (end > call.begin) allowed += end - std::max(span.begin, call.begin) + call.limit;
    };
    for (const auto& outage : outages_) allow(outage.span);
    for (const auto& span : call.party.absent) allow(span);
  }
  const auto took = now() - call.begin;
  if (took > allowed) wrong(call.party.name + ": " + call.what + " took " + text_of(took));
}

// ---- the course of things

void TimedWorld::work(Party& party, std::function<void()> act) {
  static_cast<void>(party);
  const std::lock_guard lock(mutex_);
  ++working_;
  threads_.emplace_back([this, act = std::move(act)] {
    act();
    const std::lock_guard done(mutex_);
    --working_;
  });
}

std::string TimedWorld::waiting() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& call : calls_) {
    text += " " + call.party.name + ": " + call.what + " since " + text_of(call.begin) + ";";
  }
  return text;
}

void TimedWorld::run_until_done(Nanoseconds limit) {
  const auto done = [this] {
    const std::lock_guard lock(mutex_);
    return working_ == 0;
  };
  if (time_.run_until(done, limit)) return;
  wrong("still waiting:" + waiting());
  for (auto& party : parties_) {
    if (party.dead) continue;
    declare_dead(party);
    party.clock.resume();
  }
  time_.run_until(done, for_ever);
}

std::set<std::string> TimedWorld::fenced() const {
  const std::lock_guard lock(mutex_);
  return fenced_;
}

std::string TimedWorld::conclude() {
  for (auto& party : parties_) {
    work(party, [this, &party] {
      const bool over = party.dead || fenced().contains(party.name);
      if (party.mount && !over) call(party, "unmount", [&] { return party.mount->unmount(); });
      if (party.collector && !over) call(party, "end", [&] { return party.collector->instance().end(); });
      party.mount.reset();
    });
  }
  run_until_done(now() + seconds(600));
  for (const auto& finding : need(check::check_volume(*cluster_->new_client()))) {
    wrong(check::text_of(finding));
  }
  const std::lock_guard lock(mutex_);
  return wrong_;
}

}  // namespace lccfs::crash
