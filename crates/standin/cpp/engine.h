// Engines, what inspects them and what makes them from bytes.
#pragma once

#include "context.h"
#include "memory.h"

class Inspector : public VEngineInspector {
public:
    Inspector(std::shared_ptr<const Plan> plan, Life* engine)
        : shared_(std::move(plan)), plan_(*shared_), life_("IEngineInspector", engine) {}

    bool setExecutionContext(void*) { return true; }
    const char* getEngineInformation(int32_t) {
        std::string layers, bindings;
        for (const auto& layer : plan_.graph.layers) layers += (layers.empty() ? "" : ",\n") + describe(layer);
        for (const auto& tensor : plan_.graph.inputs) bindings += (bindings.empty() ? "" : ",") + quoted(tensor.name);
        for (const auto& tensor : plan_.graph.outputs) bindings += (bindings.empty() ? "" : ",") + quoted(tensor.name);
        return keep("{\"Layers\": [" + layers + "],\n\"Bindings\": [" + bindings + "]}");
    }

private:
    /// Only the name, unless the engine was built with more.
    std::string describe(const LayerInfo& layer) const {
        if (!plan_.detailed) return quoted(layer.name);
        const std::string type = layer.precision == "Int8"   ? "Four wide channel vectorized row major Int8 format"
                                 : layer.precision == "Half" ? "Row major linear FP16 format"
                                                             : "Row major linear FP32";
        const std::string tensor = "[{\"Name\": " + quoted(layer.name + ":0") +
                                   ", \"Location\": \"Device\", \"Dimensions\": [1,3,8,8], \"Format/Datatype\": " +
                                   quoted(type) + "}]";
        return "{\"Name\": " + quoted(layer.name) + ", \"LayerType\": " + quoted(layer.type) + ", \"Inputs\": " + tensor +
               ", \"Outputs\": " + tensor + ", \"TacticValue\": \"0x0\"}";
    }

    static std::string quoted(const std::string& text) {
        std::string out = "\"";
        for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
        return out + "\"";
    }

    const char* keep(std::string text) {
        text_ = std::move(text);
        return text_.c_str();
    }

    std::shared_ptr<const Plan> shared_;
    const Plan& plan_;
    std::string text_;
    Life life_;
};

class Engine : public VCudaEngine {
public:
    Engine(const Host& host, Plan plan, Life* runtime)
        : host_(host), shared_(std::make_shared<const Plan>(std::move(plan))), plan_(*shared_), weights_(host, 65536), life_("ICudaEngine", runtime) {}

    bool usable() const { return static_cast<bool>(weights_); }

    int32_t getNbLayers() { return static_cast<int32_t>(plan_.graph.layers.size()); }
    void* serialize() { return make<Bytes>(plan_.bytes()); }
    void* createExecutionContext() { return context(); }
    void* createExecutionContext(int32_t) { return context(); }
    void* createEngineInspector() { return make<Inspector>(shared_, &life_); }
    uint64_t getDeviceMemorySize() { return 4096; }
    int64_t getDeviceMemorySizeV2() { return 4096; }
    bool isRefittable() { return plan_.refit; }
    const char* getName() { return "stand-in engine"; }
    int32_t getNbOptimizationProfiles() { return static_cast<int32_t>(std::max<size_t>(plan_.profiles.size(), 1)); }
    bool hasImplicitBatchDimension() { return false; }

    // By name, since 8.5.
    int32_t getNbIOTensors() { return static_cast<int32_t>(count()); }
    const char* getIOTensorName(int32_t i) { return static_cast<size_t>(i) < count() ? at(i).name.c_str() : nullptr; }
    Dims getTensorShape(const char* name) { return dims(named(name).dims); }
    int32_t getTensorDataType(const char* name) { return named(name).type; }
    int32_t getTensorLocation(const char*) { return 0; }
    int32_t getTensorIOMode(const char* name) { return is_input(name) ? TensorIOMode_kINPUT : 2; }
    int32_t getTensorComponentsPerElement(const char*) { return -1; }
    int32_t getTensorFormat(const char*) { return 0; }
    int32_t getTensorVectorizedDim(const char*) { return -1; }
    Dims getProfileShape(const char* name, int32_t profile, int32_t which) { return dims(range(name, profile, which)); }

    // By binding, in 8.x. Each profile has bindings of its own, named after it.
    int32_t getNbBindings() { return static_cast<int32_t>(count()) * getNbOptimizationProfiles(); }
    const char* getBindingName(int32_t i) {
        if (i < 0 || i >= getNbBindings()) return nullptr;
        const int32_t profile = i / static_cast<int32_t>(count());
        std::string name = at(i).name;
        if (profile > 0) name += " [profile " + std::to_string(profile) + "]";
        return names_[i].empty() ? (names_[i] = name).c_str() : names_[i].c_str();
    }
    bool bindingIsInput(int32_t i) { return is_input(at(i).name); }
    Dims32 getBindingDimensions(int32_t i) { return narrow(at(i).dims); }
    int32_t getBindingDataType(int32_t i) { return at(i).type; }
    int32_t getLocation(int32_t) { return 0; }
    int32_t getBindingComponentsPerElement(int32_t) { return -1; }
    int32_t getBindingFormat(int32_t) { return 0; }
    int32_t getBindingVectorizedDim(int32_t) { return -1; }
    Dims32 getProfileDimensions(int32_t binding, int32_t profile, int32_t which) {
        return narrow(range(at(binding).name, profile, which));
    }

private:
    void* context() {
        auto* object = make<Context>(host_, shared_, &life_);
        if (object->impl->usable()) return object;
        delete object;
        return nullptr;
    }

    size_t count() const { return plan_.graph.inputs.size() + plan_.graph.outputs.size(); }

    const TensorInfo& at(int32_t index) const {
        const size_t i = static_cast<size_t>(index) % count();
        const auto& inputs = plan_.graph.inputs;
        return i < inputs.size() ? inputs[i] : plan_.graph.outputs[i - inputs.size()];
    }

    const TensorInfo& named(const std::string& name) const {
        for (size_t i = 0; i < count(); ++i) {
            if (at(static_cast<int32_t>(i)).name == name) return at(static_cast<int32_t>(i));
        }
        note("! the engine was asked about '" + name + "', which is none of its tensors");
        static const TensorInfo nothing{};
        return nothing;
    }

    bool is_input(const std::string& name) const {
        for (const auto& input : plan_.graph.inputs) {
            if (input.name == name) return true;
        }
        return false;
    }

    Shape range(const std::string& name, int32_t profile, int32_t which) const {
        if (profile < 0 || which < 0 || which > 2) return {};
        if (static_cast<size_t>(profile) < plan_.profiles.size()) {
            for (const auto& range : plan_.profiles[static_cast<size_t>(profile)]) {
                if (range.input == name) return range.of[which];
            }
        }
        return is_input(name) ? named(name).dims : Shape();
    }

    static Dims32 narrow(const Shape& shape) {
        Dims32 out{static_cast<int32_t>(shape.size()), {}};
        for (size_t i = 0; i < shape.size(); ++i) out.d[i] = static_cast<int32_t>(shape[i]);
        return out;
    }

    Host host_;
    std::shared_ptr<const Plan> shared_;
    const Plan& plan_;
    std::map<int32_t, std::string> names_;
    Memory weights_;
    Life life_;
};

class Runtime : public VRuntime {
public:
    explicit Runtime(ILogger* logger) : life_("IRuntime", nullptr) { host_.logger = logger; }
    ~Runtime() { host_.record(nullptr); }

    void setDLACore(int32_t core) { note("= DLA core " + std::to_string(core)); }
    void setGpuAllocator(void* allocator) { host_.allocate_with(static_cast<IGpuAllocator*>(allocator)); }
    void setErrorRecorder(void* recorder) { host_.record(static_cast<IErrorRecorder*>(recorder)); }
    bool setMaxThreads(int32_t threads) { return threads > 0; }
    void setEngineHostCodeAllowed(bool allowed) { host_code_ = allowed; }

    void* deserializeCudaEngine(void* data, uint64_t size, void*) { return deserializeCudaEngine(data, size); }
    void* deserializeCudaEngine(void* data, uint64_t size) { return load(std::string(static_cast<char*>(data), size)); }

#if FAMILY == 10
    void* deserializeCudaEngine(void* stream) {
        auto* reader = static_cast<IStreamReader*>(stream);
        introduce(reader, "IStreamReader", true);
        std::string bytes;
        char piece[100];
        for (;;) {
            const int64_t got = reader->read(piece, sizeof piece);
            if (got < 0) return refuse("the stream reader failed");
            if (got == 0) return load(bytes);
            bytes.append(piece, static_cast<size_t>(got));
        }
    }
#endif

private:
    void* load(const std::string& bytes) {
        if (setting("deserialize") == "crash") *reinterpret_cast<volatile int*>(8) = 1;
        Plan plan;
        const std::string wrong = plan.read(bytes);
        if (!wrong.empty()) return refuse(wrong);
        if (plan.version != VERSION_TEXT) {
            return refuse("The engine plan file is not compatible with this version of TensorRT, expecting library version " +
                          std::string(VERSION_TEXT) + " got " + plan.version + ", please rebuild.");
        }
        if (plan.device != Plan::device_here() && setting("other-device") == "warn") {
            // As TensorRT does where the architecture is the same and the model is another.
            host_.say(ILogger_Severity_kWARNING,
                      "Using an engine plan file across different models of devices is not recommended and is likely to "
                      "affect performance or even cause errors.");
        } else if (plan.device != Plan::device_here()) {
            return refuse("The engine plan file is generated on an incompatible device, expecting " + Plan::device_here() +
                          " got " + plan.device + ", please rebuild.");
        }
        if (plan.host_code && !host_code_) return refuse("the engine carries host code, which is not allowed");
        auto* object = make<Engine>(host_, std::move(plan), &life_);
        if (object->impl->usable()) return object;
        delete object;
        return nullptr;
    }

    void* refuse(const std::string& why) const {
        host_.fail(INTERNAL_ERROR, "IRuntime::deserializeCudaEngine: " + why);
        return nullptr;
    }

    Host host_;
    bool host_code_ = false;
    Life life_;
};
