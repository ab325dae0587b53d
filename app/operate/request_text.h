// The requests of a running server as text for a terminal: a table of those that run, and the timeline of one in words.
// Shape   from the JSON of GET /admin/requests and GET /admin/requests/{id}/explain. Members that are missing or of
//         another type count as 0 or empty: a newer server may have changed them. Text that clients chose is escaped.
// Thread  any; pure.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace quire::app {

std::string request_table(const boost::json::object& list);
std::string timeline_text(const boost::json::object& timeline);

}  // namespace quire::app
