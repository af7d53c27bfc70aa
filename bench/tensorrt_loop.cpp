// The least a C++ program must do to run a TensorRT engine over and over: what Prony's session is held against.
//
// Built against NVIDIA's own headers by bench/tensorrt_vs_cpp and opened by the example `trt_overhead`, so that both sides
// run in one process, on one library, turn by turn. Two ways of running: one call in flight, timed by the host's clock from
// the first copy to the last; and two calls in flight on three streams, the computing timed by events.

#include <NvInferRuntime.h>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <cuda_runtime_api.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

class Logger : public nvinfer1::ILogger {
    void log(Severity severity, char const* text) noexcept override
    {
        if (severity <= Severity::kERROR) {
            std::fprintf(stderr, "%s\n", text);
        }
    }
};

struct Tensor {
    std::string name;
    bool input;
    size_t bytes;
    void* host;
    void* device;
};

struct Slot {
    std::vector<Tensor> tensors;
    cudaEvent_t loaded, begun, done, copied;
    cudaGraphExec_t graph{nullptr};
    bool flying{false};
};

bool ok(cudaError_t status)
{
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    }
    return status == cudaSuccess;
}

size_t size_of(nvinfer1::DataType type)
{
    switch (type) {
    case nvinfer1::DataType::kFLOAT:
    case nvinfer1::DataType::kINT32: return 4;
    case nvinfer1::DataType::kHALF: return 2;
    default: return 1;
    }
}

} // namespace

struct Loop {
    Logger logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    std::unique_ptr<nvinfer1::IExecutionContext> context;
    cudaStream_t up{}, compute{}, down{};
    Slot slots[2];
};

namespace {

bool point(Loop& loop, Slot& slot)
{
    for (auto& tensor : slot.tensors) {
        if (!loop.context->setTensorAddress(tensor.name.c_str(), tensor.device)) {
            return false;
        }
    }
    return true;
}

bool make_slot(Loop& loop, Slot& slot, bool graph)
{
    for (int i = 0; i < loop.engine->getNbIOTensors(); ++i) {
        char const* name = loop.engine->getIOTensorName(i);
        auto const shape = loop.context->getTensorShape(name);
        size_t bytes = size_of(loop.engine->getTensorDataType(name));
        for (int d = 0; d < shape.nbDims; ++d) {
            bytes *= static_cast<size_t>(shape.d[d]);
        }
        bool const input = loop.engine->getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
        Tensor tensor{name, input, bytes, nullptr, nullptr};
        if (!ok(cudaMallocHost(&tensor.host, bytes)) || !ok(cudaMalloc(&tensor.device, bytes))) {
            return false;
        }
        std::memset(tensor.host, 0, bytes);
        slot.tensors.push_back(tensor);
    }
    for (auto* event : {&slot.loaded, &slot.begun, &slot.done, &slot.copied}) {
        if (!ok(cudaEventCreate(event))) {
            return false;
        }
    }
    if (!point(loop, slot) || !loop.context->enqueueV3(loop.compute) || !ok(cudaStreamSynchronize(loop.compute))) {
        return false;
    }
    if (graph) {
        cudaGraph_t captured{};
        if (!ok(cudaStreamBeginCapture(loop.compute, cudaStreamCaptureModeThreadLocal))) {
            return false;
        }
        bool const enqueued = loop.context->enqueueV3(loop.compute);
        if (!ok(cudaStreamEndCapture(loop.compute, &captured)) || !enqueued) {
            return false;
        }
        if (!ok(cudaGraphInstantiate(&slot.graph, captured, 0))) {
            return false;
        }
        cudaGraphDestroy(captured);
    }
    return true;
}

bool enqueue(Loop& loop, Slot& slot, cudaStream_t stream)
{
    return slot.graph ? ok(cudaGraphLaunch(slot.graph, stream)) : point(loop, slot) && loop.context->enqueueV3(stream);
}

bool copy(Slot& slot, bool inputs, cudaStream_t stream)
{
    for (auto& tensor : slot.tensors) {
        if (tensor.input != inputs) {
            continue;
        }
        auto const kind = inputs ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
        void* to = inputs ? tensor.device : tensor.host;
        void* from = inputs ? tensor.host : tensor.device;
        if (!ok(cudaMemcpyAsync(to, from, tensor.bytes, kind, stream))) {
            return false;
        }
    }
    return true;
}

} // namespace

extern "C" Loop* loop_open(char const* path, int graph)
{
    auto loop = std::make_unique<Loop>();
    std::ifstream file(path, std::ios::binary);
    std::vector<char> plan{std::istreambuf_iterator<char>(file), {}};
    loop->runtime.reset(nvinfer1::createInferRuntime(loop->logger));
    if (!loop->runtime || plan.empty()) {
        return nullptr;
    }
    loop->engine.reset(loop->runtime->deserializeCudaEngine(plan.data(), plan.size()));
    if (!loop->engine) {
        return nullptr;
    }
    loop->context.reset(loop->engine->createExecutionContext());
    for (auto* stream : {&loop->up, &loop->compute, &loop->down}) {
        if (!ok(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking))) {
            return nullptr;
        }
    }
    for (auto& slot : loop->slots) {
        if (!make_slot(*loop, slot, graph != 0)) {
            return nullptr;
        }
    }
    return loop.release();
}

// One call in flight. `total_ns`: the host's clock around all of it; `inference_ns`: between the events.
extern "C" int loop_one(Loop* loop, int calls, unsigned long long* total_ns, unsigned long long* inference_ns)
{
    Slot& slot = loop->slots[0];
    for (int i = 0; i < calls; ++i) {
        auto const begun = std::chrono::steady_clock::now();
        bool fine = copy(slot, true, loop->compute) && ok(cudaEventRecord(slot.begun, loop->compute))
            && enqueue(*loop, slot, loop->compute) && ok(cudaEventRecord(slot.done, loop->compute))
            && copy(slot, false, loop->compute) && ok(cudaEventRecord(slot.copied, loop->compute))
            && ok(cudaEventSynchronize(slot.copied));
        auto const ended = std::chrono::steady_clock::now();
        float ms = 0;
        if (!fine || !ok(cudaEventElapsedTime(&ms, slot.begun, slot.done))) {
            return 1;
        }
        total_ns[i] = std::chrono::duration_cast<std::chrono::nanoseconds>(ended - begun).count();
        inference_ns[i] = static_cast<unsigned long long>(ms * 1e6);
    }
    return 0;
}

// Two calls in flight, copies beside computing.
extern "C" int loop_two(Loop* loop, int calls, unsigned long long* inference_ns, unsigned long long* wall_ns)
{
    auto const begun = std::chrono::steady_clock::now();
    int collected = 0;
    auto collect = [&](Slot& slot) {
        float ms = 0;
        if (!ok(cudaEventSynchronize(slot.copied)) || !ok(cudaEventElapsedTime(&ms, slot.begun, slot.done))) {
            return false;
        }
        inference_ns[collected++] = static_cast<unsigned long long>(ms * 1e6);
        slot.flying = false;
        return true;
    };
    for (int i = 0; i < calls; ++i) {
        Slot& slot = loop->slots[i % 2];
        if (slot.flying && !collect(slot)) {
            return 1;
        }
        bool fine = copy(slot, true, loop->up) && ok(cudaEventRecord(slot.loaded, loop->up))
            && ok(cudaStreamWaitEvent(loop->compute, slot.loaded, 0))
            && ok(cudaEventRecord(slot.begun, loop->compute)) && enqueue(*loop, slot, loop->compute)
            && ok(cudaEventRecord(slot.done, loop->compute)) && ok(cudaStreamWaitEvent(loop->down, slot.done, 0))
            && copy(slot, false, loop->down) && ok(cudaEventRecord(slot.copied, loop->down));
        if (!fine) {
            return 1;
        }
        slot.flying = true;
    }
    for (int i = calls; i < calls + 2; ++i) {
        if (loop->slots[i % 2].flying && !collect(loop->slots[i % 2])) {
            return 1;
        }
    }
    *wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begun).count();
    return 0;
}
