// Stands in for libcuda.so.1: one device whose memory is the host's, as far as a build and its calibration ask for one:
// see base.h.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base.h"

EXPORT int cuInit(unsigned) { return static_cast<int>(number("cuInit", 0)); }

EXPORT int cuDeviceGetCount(int* count) {
    *count = static_cast<int>(number("devices", 1));
    return 0;
}

EXPORT int cuDriverGetVersion(int* version) {
    *version = static_cast<int>(number("driver", 12040));
    return 0;
}

namespace {

constexpr int INVALID_VALUE = 1;
constexpr int OUT_OF_MEMORY = 2;
constexpr std::size_t ALIGNMENT = 256;

std::mutex lock;
std::map<void*, std::size_t> blocks;
std::size_t held = 0;

std::size_t total() { return static_cast<std::size_t>(number("memory", 1L << 30)); }

int allocate(void** address, std::size_t bytes) {
    const std::lock_guard<std::mutex> guard(lock);
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (held + rounded > total()) return OUT_OF_MEMORY;
    *address = std::aligned_alloc(ALIGNMENT, rounded);
    if (!*address) return OUT_OF_MEMORY;
    blocks[*address] = rounded;
    held += rounded;
    return 0;
}

int release(void* address) {
    const std::lock_guard<std::mutex> guard(lock);
    const auto block = blocks.find(address);
    if (block == blocks.end()) return INVALID_VALUE;
    held -= block->second;
    std::free(address);
    blocks.erase(block);
    return 0;
}

int put(char* into, int length, const std::string& text) {
    if (length <= 0) return INVALID_VALUE;
    std::strncpy(into, text.c_str(), static_cast<std::size_t>(length) - 1);
    into[length - 1] = 0;
    return 0;
}

}  // namespace

EXPORT int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return 0;
}

EXPORT int cuDeviceGetName(char* name, int length, int) {
    const std::string asked = setting("device");
    return put(name, length, asked.empty() ? "Stand-in GPU" : asked);
}

EXPORT int cuDeviceGetPCIBusId(char* id, int length, int) { return put(id, length, "0000:01:00.0"); }

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: *value = static_cast<int>(number("sms", 16)); return 0;
        case 18: *value = static_cast<int>(number("integrated", 0)); return 0;
        case 19: *value = 1; return 0;
        case 75: *value = static_cast<int>(number("compute", 86) / 10); return 0;
        case 76: *value = static_cast<int>(number("compute", 86) % 10); return 0;
        default: return INVALID_VALUE;
    }
}

EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
    *bytes = total();
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
    static char primary;
    *context = &primary;
    return 0;
}

EXPORT int cuCtxSetCurrent(void*) { return 0; }

EXPORT int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* all) {
    const std::lock_guard<std::mutex> guard(lock);
    *all = total();
    *free_bytes = *all - std::min(held, *all);
    return 0;
}

EXPORT int cuMemAlloc_v2(void** address, std::size_t bytes) { return allocate(address, bytes); }

EXPORT int cuMemFree_v2(void* address) { return release(address); }

EXPORT int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return 0;
}

EXPORT int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return 0;
}

EXPORT int cuGetErrorName(int code, const char** name) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}

EXPORT int cuGetErrorString(int code, const char** text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : "invalid argument";
    return 0;
}
