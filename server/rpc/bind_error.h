// Why an address cannot be listened on, in the system's words: gRPC does not tell. Any thread.
#pragma once

#include <string>

namespace quire {

// "Address already in use"; empty if the address can be bound now, or is not one of numbers.
// `address`: "host:port", "[v6]:port".
std::string BindError(const std::string& address);

}  // namespace quire
