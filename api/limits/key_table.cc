#include "api/limits/key_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace quire::api::keys {
namespace {

std::shared_ptr<bridge::Account> account_of(const KeyEntry& entry, const KeyTable* before) {
  if (before != nullptr) {
    for (const auto& caller : before->callers()) {
      if (caller->name != entry.name) continue;
      caller->account->set_limits(entry.limits);
      return caller->account;
    }
  }
  return std::make_shared<bridge::Account>(entry.name, entry.limits);
}

}  // namespace

KeyTable::KeyTable(const std::vector<KeyEntry>& entries, const KeyTable* before) {
  if (before != nullptr) tenants_ = before->tenants_;
  for (const KeyEntry& entry : entries) {
    Caller caller{.name = entry.name,
                  .role = entry.role,
                  .weight = entry.weight,
                  .monitors = entry.monitors,
                  .account = account_of(entry, before)};
    const std::string& tenant = entry.tenant.empty() ? entry.name : entry.tenant;
    if (tenant != kDefaultTenant) {
      caller.tenant = tenant;
      caller.tenant_id = number_of(tenant);
    }
    digests_.push_back(entry.digest);
    callers_.push_back(std::make_shared<const Caller>(std::move(caller)));
  }
}

std::shared_ptr<const Caller> KeyTable::find(std::string_view secret) const {
  const Digest given = digest_of(secret);
  std::size_t found = 0;  // index + 1; 0: not found
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    const std::size_t mask = std::size_t{0} - static_cast<std::size_t>(equal(digests_[i], given));
    found |= mask & (i + 1);
  }
  return found == 0 ? nullptr : callers_[found - 1];
}

std::uint32_t KeyTable::number_of(const std::string& tenant) {
  return tenants_.emplace(tenant, static_cast<std::uint32_t>(tenants_.size() + 1)).first->second;
}

}  // namespace quire::api::keys
