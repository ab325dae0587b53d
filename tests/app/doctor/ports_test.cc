#include "app/doctor/ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <string>

namespace quire::app::doctor::ports_test {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;

TEST(Ports, AFreeOneIsFreeAndStaysSo) {
  boost::asio::io_context context;
  std::uint16_t port = 0;
  {
    const tcp::acceptor acceptor(context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    port = acceptor.local_endpoint().port();
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(port_facts("127.0.0.1", port).error, 0);
}

TEST(Ports, ABusyOneIsReportedWithTheProcessThatHoldsIt) {
  boost::asio::io_context context;
  const tcp::acceptor acceptor(context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  const PortFacts facts = port_facts("127.0.0.1", acceptor.local_endpoint().port());
  EXPECT_EQ(facts.error, EADDRINUSE);
  EXPECT_THAT(facts.holder, HasSubstr("(pid " + std::to_string(::getpid()) + ")"));
}

TEST(Ports, AnAddressOfAnotherMachineCannotBeListenedOn) {
  EXPECT_EQ(port_facts("192.0.2.1", 8000).error, EADDRNOTAVAIL);
  EXPECT_EQ(port_facts("no such host", 8000).error, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace quire::app::doctor::ports_test
