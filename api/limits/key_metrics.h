// Prometheus series of each API key: its current sequences, and its requests and tokens so far.
// Shape   appended to the other series: one line per figure and key of the table, labelled with the key's name, so the
//         number of keys bounds the lines. The series of a removed key disappear.
// Thread  any.
// Source  Prometheus text exposition format 0.0.4.
#pragma once

#include <string>

#include "api/limits/key_table.h"

namespace quire::api::keys {

void append_metrics(std::string& text, const KeyTable& table);

}  // namespace quire::api::keys
