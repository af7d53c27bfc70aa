// Bytes for the caller: engines and timing caches.
#pragma once

#include "base.h"

class Bytes : public VHostMemory {
public:
    explicit Bytes(std::string bytes) : bytes_(std::move(bytes)), life_("IHostMemory", nullptr) {}

    void* data() { return &bytes_[0]; }
    uint64_t size() { return bytes_.size(); }

private:
    std::string bytes_;
    Life life_;
};
