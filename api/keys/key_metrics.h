// What each key has under way and has had, as series of Prometheus.
// Shape   text after the other series: a line for each key of the table and figure, labelled with its name, so that there
//         are never more than the file has lines. A key that left the file takes its series along.
// Thread  any.
// Source  Prometheus text exposition format 0.0.4.
#pragma once

#include <string>

#include "api/keys/key_table.h"

namespace quire::api::keys {

void append_metrics(std::string& text, const KeyTable& table);

}  // namespace quire::api::keys
