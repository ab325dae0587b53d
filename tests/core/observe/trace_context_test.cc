#include "core/observe/trace_context.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

namespace quire::observe {
namespace {

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kSpan = "b7ad6b7169203331";
const std::string kParent = "00-" + kTrace + "-" + kSpan + "-01";

TEST(TraceParent, IsReadAsTheRecommendationWritesIt) {
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace_id, kTrace);
  EXPECT_EQ(parent->span_id, kSpan);
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(parse_traceparent("00-" + kTrace + "-" + kSpan + "-00")->sampled);
}

TEST(TraceParent, OfItsFlagsTheLowestBitAloneCounts) {
  for (unsigned flags = 0; flags < 256; ++flags) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", flags);
    const auto parent = parse_traceparent("00-" + kTrace + "-" + kSpan + "-" + digits);
    ASSERT_TRUE(parent) << digits;
    EXPECT_EQ(parent->sampled, (flags & 1) != 0) << digits;
  }
}

TEST(TraceParent, OfALaterVersionItsBeginningIsRead) {
  for (const std::string version : {"01", "0f", "cc", "fe"}) {
    const std::string known = version + kParent.substr(2);
    EXPECT_TRUE(parse_traceparent(known)) << version;
    EXPECT_TRUE(parse_traceparent(known + "-what-comes-later")) << version;
    EXPECT_TRUE(parse_traceparent(known + "-")) << version;
    EXPECT_FALSE(parse_traceparent(known + "x")) << "no dash behind the flags";
  }
  EXPECT_FALSE(parse_traceparent("ff" + kParent.substr(2))) << "no version may be called so";
}

TEST(TraceParent, CountsForNothingWhereARuleIsBroken) {
  const std::string zeros(32, '0');
  for (const std::string& bad :
       {std::string(), kParent.substr(0, 54), kParent + "-", kParent + "0", " " + kParent + "0",
        "00-" + zeros + "-" + kSpan + "-01", "00-" + kTrace + "-" + zeros.substr(16) + "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" + kSpan + "-01", "00-" + kTrace + "-" + kSpan + "-0A",
        "0A-" + kTrace + "-" + kSpan + "-01", "00_" + kTrace + "-" + kSpan + "-01",
        "00-" + kTrace + "_" + kSpan + "-01", "00-" + kTrace + "-" + kSpan + "_01", kParent + "," + kParent,
        std::string(55, '-'), std::string(4096, '0')}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
  EXPECT_TRUE(parse_traceparent(" \t" + kParent + "\t ")) << "blanks around a field are not part of it";
}

// Every change of one byte, and every length, against the recommendation's grammar as an expression.
TEST(TraceParent, IsTakenExactlyWhereTheGrammarTakesIt) {
  const std::regex grammar(
      "(00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
      "|(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?)");
  std::mt19937 random(1);  // the seed is the test
  const std::string letters = "0123456789abcdefABCDEFg-_ ,\x80";
  int num_taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string field = kParent;
    for (unsigned changes = random() % 3; changes > 0; --changes) {
      field[random() % field.size()] = letters[random() % letters.size()];
    }
    if (random() % 4 == 0) field.resize(random() % 60, letters[random() % letters.size()]);
    const bool padded = field.empty() || field.front() == ' ' || field.back() == ' ';
    if (padded) continue;
    EXPECT_EQ(parse_traceparent(field).has_value(), std::regex_match(field, grammar)) << field;
    num_taken += parse_traceparent(field).has_value() ? 1 : 0;
  }
  EXPECT_GT(num_taken, 1000);
}

TEST(TraceState, IsAListOfNamesWithValues) {
  for (const std::string good : {"rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "a=1 , b=2",
                                 "a=1,,b=2", "fw529a3039@dt=FfK8, a*b/c_d-e= x!~", "0tenant@vendor=1"}) {
    EXPECT_TRUE(is_tracestate(good)) << good;
  }
  for (const std::string bad : {"", ",", "a", "=1", "a=", "A=1", "1a=1", "a=1=2", "a b=1", "a=\x7f", "a=\xc3\xa9",
                                "a@=1", "@a=1", "a@1=1", "a@b@c=1", "a=1\tb"}) {
    EXPECT_FALSE(is_tracestate(bad)) << bad;
  }
}

TEST(TraceState, HasAtMost32MembersAnd512Bytes) {
  const auto members = [](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += (i == 0 ? "a" : ",a") + std::to_string(i) + "=1";
    return text;
  };
  EXPECT_TRUE(is_tracestate(members(31)));
  EXPECT_TRUE(is_tracestate(members(32)));
  EXPECT_FALSE(is_tracestate(members(33)));
  const auto bytes = [](std::size_t n) { return "a=" + std::string(254, 'x') + ",b=" + std::string(n - 259, 'x'); };
  ASSERT_EQ(bytes(512).size(), 512u);
  EXPECT_TRUE(is_tracestate(bytes(511)));
  EXPECT_TRUE(is_tracestate(bytes(512)));
  EXPECT_FALSE(is_tracestate(bytes(513)));
}

TEST(TraceState, ItsNamesAndValuesHaveTheirLengths) {
  const auto member = [](std::size_t name, std::size_t value) {
    return std::string(name, 'a') + "=" + std::string(value, 'x');
  };
  EXPECT_TRUE(is_tracestate(member(255, 1)));
  EXPECT_TRUE(is_tracestate(member(256, 1)));
  EXPECT_FALSE(is_tracestate(member(257, 1)));
  EXPECT_TRUE(is_tracestate(member(1, 255)));
  EXPECT_TRUE(is_tracestate(member(1, 256)));
  EXPECT_FALSE(is_tracestate(member(1, 257)));
  EXPECT_TRUE(is_tracestate(std::string(241, 't') + "@" + std::string(14, 'v') + "=1"));
  EXPECT_FALSE(is_tracestate(std::string(242, 't') + "@v=1"));
  EXPECT_FALSE(is_tracestate("t@" + std::string(15, 'v') + "=1"));
}

std::string random_trace(std::mt19937_64& random) {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(random()),
                static_cast<unsigned long long>(random()));
  return digits;
}

TEST(Sampler, TakesAsManyAsItsShareAndTheSameOnesEveryTime) {
  std::mt19937_64 random(1);
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    const Sampler sampler{.root_share = share};
    int num_taken = 0;
    for (int i = 0; i < 10000; ++i) {
      const std::string trace = random_trace(random);
      const bool taken = sampler.takes(trace, nullptr);
      EXPECT_EQ(sampler.takes(trace, nullptr), taken);
      num_taken += taken ? 1 : 0;
    }
    EXPECT_NEAR(num_taken, 10000 * share, 300);  // six standard deviations of a share of one half
  }
}

TEST(Sampler, ALargerShareTakesWhateverASmallerOneTakes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    const std::string trace = random_trace(random);
    const bool smaller = Sampler{.root_share = 0.2}.takes(trace, nullptr);
    EXPECT_LE(smaller, (Sampler{.root_share = 0.3}.takes(trace, nullptr)));
  }
}

TEST(Sampler, TheBoundIsExact) {
  const Sampler quarter{.root_share = 0.25};
  const std::string high(16, 'f');
  EXPECT_TRUE(quarter.takes(high + "3ffffffffffffffe", nullptr));
  EXPECT_TRUE(quarter.takes(high + "3fffffffffffffff", nullptr));
  EXPECT_FALSE(quarter.takes(high + "4000000000000000", nullptr));
}

TEST(Sampler, FollowsItsParentIfParentBased) {
  const TraceParent yes{kTrace, kSpan, true};
  const TraceParent no{kTrace, kSpan, false};
  EXPECT_TRUE((Sampler{.root_share = 0.0}.takes(kTrace, &yes)));
  EXPECT_FALSE((Sampler{.root_share = 1.0}.takes(kTrace, &no)));
  EXPECT_FALSE((Sampler{.root_share = 0.0, .follows_parent = false}.takes(kTrace, &yes)));
  EXPECT_TRUE((Sampler{.root_share = 1.0, .follows_parent = false}.takes(kTrace, &no)));
}

}  // namespace
}  // namespace quire::observe
