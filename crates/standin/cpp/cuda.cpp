// Stands in for libcuda.so.1: see base.h. Device memory is the host's and work is done at once, so an order that a test
// relies on is the order of the calls. Copies, marks and recorded work follow the driver's rules as far as breaking them
// can be seen: memory that is not there, a mark that was never set, a graph that is gone.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "base.h"

namespace {

enum Result : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    CAPTURE_UNSUPPORTED = 900,
};

using Work = std::function<void()>;

struct Graph {
    std::vector<Work> work;
};

struct Stream {
    Graph* recording = nullptr;
};

struct Event {
    double ms = -1;
};

std::mutex mutex;
std::map<uintptr_t, size_t> device_memory;
size_t held = 0;

size_t total() { return static_cast<size_t>(number("memory", 1 << 30)); }

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whether so many bytes from there on are device memory.
bool on_device(uintptr_t address, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    auto block = device_memory.upper_bound(address);
    if (block == device_memory.begin()) return false;
    --block;
    return address + bytes <= block->first + block->second;
}

int copy(void* to, const void* from, uintptr_t device, size_t bytes) {
    if (!on_device(device, bytes)) {
        note("! a copy of " + std::to_string(bytes) + " bytes left the device's memory");
        return INVALID_VALUE;
    }
    std::memcpy(to, from, bytes);
    return SUCCESS;
}

} // namespace

/// What the stand-in of TensorRT calls: work in the order of a stream, or kept where the stream records.
EXPORT void standin_submit(void* stream, void (*run)(void*), void* of, void (*drop)(void*)) {
    const std::shared_ptr<void> data(of, drop);
    auto* recording = stream ? static_cast<Stream*>(stream)->recording : nullptr;
    if (recording) recording->work.push_back([run, data] { run(data.get()); });
    else run(of);
}

EXPORT int cuInit(unsigned) { return static_cast<int>(number("cuInit", 0)); }

EXPORT int cuDriverGetVersion(int* version) {
    *version = static_cast<int>(number("driver", 12040));
    return SUCCESS;
}

EXPORT int cuGetErrorName(int error, const char** name) {
    switch (error) {
        case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
        case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
        case CAPTURE_UNSUPPORTED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
        default: *name = nullptr; return INVALID_VALUE;
    }
    return SUCCESS;
}

EXPORT int cuGetErrorString(int, const char** text) {
    *text = "the stand-in says so";
    return SUCCESS;
}

EXPORT int cuDeviceGetCount(int* count) {
    *count = static_cast<int>(number("devices", 1));
    return SUCCESS;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < number("devices", 1) ? SUCCESS : INVALID_DEVICE;
}

EXPORT int cuDeviceGetName(char* name, int length, int) {
    const std::string asked = setting("device");
    std::snprintf(name, static_cast<size_t>(length), "%s", asked.empty() ? "Stand-in GPU" : asked.c_str());
    return SUCCESS;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: *value = static_cast<int>(number("sms", 16)); break;
        case 18: *value = static_cast<int>(number("integrated", 0)); break;
        case 19: *value = 1; break;
        case 75: *value = static_cast<int>(number("compute", 86) / 10); break;
        case 76: *value = static_cast<int>(number("compute", 86) % 10); break;
        default: return INVALID_VALUE;
    }
    return SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = total();
    return SUCCESS;
}

EXPORT int cuDeviceGetPCIBusId(char* id, int length, int) {
    std::snprintf(id, static_cast<size_t>(length), "0000:00:00.0");
    return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
    static int primary = 0;
    *context = &primary;
    return SUCCESS;
}

EXPORT int cuCtxSetCurrent(void*) { return SUCCESS; }

EXPORT int cuMemGetInfo_v2(size_t* free, size_t* all) {
    const std::lock_guard<std::mutex> lock(mutex);
    *all = total();
    *free = total() - held;
    return SUCCESS;
}

EXPORT int cuMemAlloc_v2(uintptr_t* address, size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (held + bytes > total()) return OUT_OF_MEMORY;
    *address = reinterpret_cast<uintptr_t>(std::aligned_alloc(512, (bytes + 511) / 512 * 512));
    device_memory[*address] = bytes;
    held += bytes;
    return SUCCESS;
}

EXPORT int cuMemFree_v2(uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto block = device_memory.find(address);
    if (block == device_memory.end()) {
        note("! device memory was freed that is not there");
        return INVALID_VALUE;
    }
    held -= block->second;
    device_memory.erase(block);
    std::free(reinterpret_cast<void*>(address));
    return SUCCESS;
}

EXPORT int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
    *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *address ? SUCCESS : OUT_OF_MEMORY;
}

EXPORT int cuMemFreeHost(void* address) {
    std::free(address);
    return SUCCESS;
}

EXPORT int cuMemHostGetDevicePointer_v2(uintptr_t* address, void* host, unsigned) {
    *address = reinterpret_cast<uintptr_t>(host);
    return SUCCESS;
}

EXPORT int cuMemcpyHtoD_v2(uintptr_t to, const void* from, size_t bytes) {
    return copy(reinterpret_cast<void*>(to), from, to, bytes);
}

EXPORT int cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
    return copy(to, reinterpret_cast<void*>(from), from, bytes);
}

EXPORT int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void*) {
    return cuMemcpyHtoD_v2(to, from, bytes);
}

EXPORT int cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void*) {
    return cuMemcpyDtoH_v2(to, from, bytes);
}

EXPORT int cuStreamCreate(void** stream, unsigned) {
    *stream = new Stream;
    return SUCCESS;
}

EXPORT int cuStreamDestroy_v2(void* stream) {
    delete static_cast<Stream*>(stream);
    return SUCCESS;
}

EXPORT int cuStreamSynchronize(void*) { return SUCCESS; }

EXPORT int cuStreamWaitEvent(void*, void* event, unsigned) {
    return static_cast<Event*>(event)->ms < 0 ? INVALID_HANDLE : SUCCESS;
}

EXPORT int cuStreamBeginCapture_v2(void* stream, int) {
    if (setting("capture") == "unsupported") return CAPTURE_UNSUPPORTED;
    static_cast<Stream*>(stream)->recording = new Graph;
    note("+ graph");
    return SUCCESS;
}

EXPORT int cuStreamEndCapture(void* stream, void** graph) {
    *graph = static_cast<Stream*>(stream)->recording;
    static_cast<Stream*>(stream)->recording = nullptr;
    return *graph ? SUCCESS : CAPTURE_UNSUPPORTED;
}

EXPORT int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
    *exec = new Graph(*static_cast<Graph*>(graph));
    note("+ graph to launch");
    return SUCCESS;
}

EXPORT int cuGraphLaunch(void* exec, void*) {
    for (const auto& work : static_cast<Graph*>(exec)->work) work();
    return SUCCESS;
}

EXPORT int cuGraphDestroy(void* graph) {
    delete static_cast<Graph*>(graph);
    note("- graph");
    return SUCCESS;
}

EXPORT int cuGraphExecDestroy(void* exec) {
    delete static_cast<Graph*>(exec);
    note("- graph to launch");
    return SUCCESS;
}

EXPORT int cuEventCreate(void** event, unsigned) {
    *event = new Event;
    return SUCCESS;
}

EXPORT int cuEventDestroy_v2(void* event) {
    delete static_cast<Event*>(event);
    return SUCCESS;
}

EXPORT int cuEventRecord(void* event, void*) {
    static_cast<Event*>(event)->ms = now_ms();
    return SUCCESS;
}

EXPORT int cuEventQuery(void* event) { return static_cast<Event*>(event)->ms < 0 ? NOT_READY : SUCCESS; }

EXPORT int cuEventSynchronize(void*) { return SUCCESS; }

EXPORT int cuEventElapsedTime(float* ms, void* from, void* to) {
    const double begun = static_cast<Event*>(from)->ms;
    const double ended = static_cast<Event*>(to)->ms;
    if (begun < 0 || ended < 0) {
        note("! a mark was read that was never set");
        return INVALID_HANDLE;
    }
    *ms = static_cast<float>(std::max(0.0, ended - begun));
    return SUCCESS;
}
