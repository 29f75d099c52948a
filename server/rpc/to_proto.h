// What delivery hands over, as wire messages. Pure; any thread.
#pragma once

#include "quire/v1/inference.pb.h"
#include "server/delivery/response_sink.h"

namespace quire {

void ToProto(OutToken token, v1::TokenInfo* out);
void ToProto(const OutFinished& finished, v1::GenerateResponse* out);  // usage too

}  // namespace quire
