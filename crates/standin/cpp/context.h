// Execution: shapes, addresses, `out = 2 * in` and the time of each layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>

#include "plan.h"

/// A 16-bit float, which not every compiler knows, as a number and back.
inline double from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double size = exponent == 31 ? INFINITY : exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

inline uint16_t to_half(double value) {
    const auto sign = static_cast<uint16_t>(value < 0 ? 0x8000 : 0);
    const double size = std::fabs(value);
    if (size == 0) return sign;
    if (size >= 65520) return sign | 0x7c00;
    int exponent = 0;
    std::frexp(size, &exponent);
    // From the smallest normal number down the steps stay the same.
    exponent = std::max(exponent, -13);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 11 - exponent)));
    return static_cast<uint16_t>(sign | (steps + ((exponent + 13) << 10)));
}

/// Elements of host memory as numbers, whatever their type.
class Elements {
public:
    Elements(void* data, int32_t type) : data_(data), type_(type) {}

    static int64_t bytes_of(int32_t type) {
        switch (type) {
            case DataType_kHALF: return 2;
            case DataType_kINT8:
            case DataType_kBOOL:
            case DataType_kUINT8: return 1;
            case DataType_kINT64: return 8;
            default: return 4;
        }
    }

    double get(int64_t i) const {
        switch (type_) {
            case DataType_kHALF: return from_half(static_cast<uint16_t*>(data_)[i]);
            case DataType_kINT8: return static_cast<int8_t*>(data_)[i];
            case DataType_kBOOL:
            case DataType_kUINT8: return static_cast<uint8_t*>(data_)[i];
            case DataType_kINT32: return static_cast<int32_t*>(data_)[i];
            case DataType_kINT64: return static_cast<double>(static_cast<int64_t*>(data_)[i]);
            default: return static_cast<float*>(data_)[i];
        }
    }

    void set(int64_t i, double value) {
        switch (type_) {
            case DataType_kHALF: static_cast<uint16_t*>(data_)[i] = to_half(value); break;
            case DataType_kINT8: static_cast<int8_t*>(data_)[i] = static_cast<int8_t>(value); break;
            case DataType_kBOOL:
            case DataType_kUINT8: static_cast<uint8_t*>(data_)[i] = static_cast<uint8_t>(value); break;
            case DataType_kINT32: static_cast<int32_t*>(data_)[i] = static_cast<int32_t>(value); break;
            case DataType_kINT64: static_cast<int64_t*>(data_)[i] = static_cast<int64_t>(value); break;
            default: static_cast<float*>(data_)[i] = static_cast<float>(value);
        }
    }

private:
    void* data_;
    int32_t type_;
};

class Context : public VExecutionContext {
public:
    Context(const Host& host, std::shared_ptr<const Plan> plan, Life* engine)
        : host_(host), shared_(std::move(plan)), plan_(*shared_), memory_(host, 4096), life_("IExecutionContext", engine) {
        select(0);
    }

    bool usable() const { return static_cast<bool>(memory_); }

    void setProfiler(void* profiler) {
        profiler_ = static_cast<IProfiler*>(profiler);
        introduce_profiler();
    }
    void setEnqueueEmitsProfile(bool emit) { emit_ = emit; }
    bool reportToProfiler() { return report(); }

    bool setOptimizationProfileAsync(int32_t profile, void*) {
        if (profile < 0 || profile >= static_cast<int32_t>(std::max<size_t>(plan_.profiles.size(), 1))) {
            host_.fail(INVALID_ARGUMENT, "there is no optimization profile " + std::to_string(profile));
            return false;
        }
        select(static_cast<size_t>(profile));
        return true;
    }

    // By name, since 8.5.
    bool setInputShape(const char* name, void* dims) { return set_shape(name, shape(*static_cast<Dims*>(dims))); }
    Dims getTensorShape(const char* name) { return dims(shape_of(name)); }
    bool setTensorAddress(const char* name, void* address) {
        if (!find(name)) return unknown(name);
        addresses_[name] = address;
        return true;
    }
    int32_t inferShapes(int32_t most, void* names) {
        int32_t missing = 0;
        for (const auto& input : plan_.graph.inputs) {
            if (known(shape_of(input.name))) continue;
            if (missing < most) static_cast<const char**>(names)[missing] = input.name.c_str();
            ++missing;
        }
        return missing;
    }
    bool setOutputAllocator(const char* name, void* allocator) {
        allocators_[name] = static_cast<IOutputAllocator*>(allocator);
        introduce(allocators_[name], "IOutputAllocator", true);
        return true;
    }
    int64_t getMaxOutputSize(const char* name) {
        const TensorInfo* tensor = find(name);
        if (!tensor) return -1;
        int64_t bytes = Elements::bytes_of(tensor->type);
        // Never more than the elements that came in.
        for (const int64_t d : shape_of(name)) bytes *= d < 0 ? count(shape_of(plan_.graph.inputs[0].name)) : d;
        return bytes;
    }
    bool allInputDimensionsSpecified() { return inferShapes(0, nullptr) == 0; }
    bool allInputShapesSpecified() { return true; }
    bool enqueueV3(void* stream) { return submit(stream, addresses_); }

    // By binding, in 8.x. Each profile has bindings of its own.
    bool setBindingDimensions(int32_t binding, Dims32 to) {
        const TensorInfo* tensor = bound(binding);
        if (!tensor) return unknown("binding " + std::to_string(binding));
        return set_shape(tensor->name, Shape(to.d, to.d + to.nbDims));
    }
    Dims32 getBindingDimensions(int32_t binding) {
        Dims32 out{-1, {}};
        const TensorInfo* tensor = bound(binding);
        if (!tensor) return out;
        const Shape now = shape_of(tensor->name);
        out.nbDims = static_cast<int32_t>(now.size());
        for (size_t i = 0; i < now.size(); ++i) out.d[i] = static_cast<int32_t>(now[i]);
        return out;
    }
    bool enqueueV2(void* bindings, void* stream, void*) {
        std::map<std::string, void*> addresses;
        for (size_t i = 0; i < tensors().size(); ++i) {
            addresses[tensors()[i]->name] = static_cast<void**>(bindings)[profile_ * tensors().size() + i];
        }
        return submit(stream, addresses);
    }

private:
    std::vector<const TensorInfo*> tensors() const {
        std::vector<const TensorInfo*> out;
        for (const auto& tensor : plan_.graph.inputs) out.push_back(&tensor);
        for (const auto& tensor : plan_.graph.outputs) out.push_back(&tensor);
        return out;
    }

    const TensorInfo* find(const std::string& name) const {
        for (const auto* tensor : tensors()) {
            if (tensor->name == name) return tensor;
        }
        return nullptr;
    }

    const TensorInfo* bound(int32_t binding) const {
        const auto all = tensors();
        const auto at = static_cast<size_t>(binding) - profile_ * all.size();
        return at < all.size() ? all[at] : nullptr;
    }

    bool unknown(const std::string& name) const {
        host_.fail(INVALID_ARGUMENT, "there is no tensor " + name);
        return false;
    }

    void select(size_t profile) {
        profile_ = profile;
        shapes_.clear();
        for (const auto& input : plan_.graph.inputs) shapes_[input.name] = input.dims;
    }

    bool set_shape(const std::string& name, const Shape& to) {
        const auto now = shapes_.find(name);
        if (now == shapes_.end()) return unknown(name);
        const Shape declared = find(name)->dims;
        bool fits = declared.size() == to.size();
        for (size_t i = 0; fits && i < to.size(); ++i) {
            fits = declared[i] < 0 ? in_profile(name, i, to[i]) : declared[i] == to[i];
        }
        if (!fits) {
            host_.fail(INVALID_ARGUMENT, "shape [" + Plan::joined(to) + "] of tensor " + name +
                                                        " is not in the range of profile " + std::to_string(profile_));
            return false;
        }
        now->second = to;
        return true;
    }

    bool in_profile(const std::string& name, size_t axis, int64_t value) const {
        if (profile_ >= plan_.profiles.size()) return false;
        for (const auto& range : plan_.profiles[profile_]) {
            if (range.input == name) return range.of[0][axis] <= value && value <= range.of[2][axis];
        }
        return false;
    }

    /// An output's free dimensions are those of the inputs with the same symbol.
    Shape shape_of(const std::string& name) const {
        const auto input = shapes_.find(name);
        if (input != shapes_.end()) return input->second;
        const TensorInfo* output = find(name);
        if (!output) return {};
        Shape out = output->dims;
        for (size_t i = 0; i < out.size(); ++i) {
            if (out[i] < 0) out[i] = symbol(output->symbols[i]);
        }
        return out;
    }

    int64_t symbol(const std::string& name) const {
        for (const auto& input : plan_.graph.inputs) {
            for (size_t i = 0; !name.empty() && i < input.symbols.size(); ++i) {
                if (input.symbols[i] == name) return shapes_.at(input.name)[i];
            }
        }
        return -1;
    }

    static bool known(const Shape& shape) {
        for (const int64_t d : shape) {
            if (d < 0) return false;
        }
        return true;
    }

    static int64_t count(const Shape& shape) {
        int64_t out = 1;
        for (const int64_t d : shape) out *= d;
        return out;
    }

    /// Puts an inference on a stream of the stand-in's driver; without one it is done at once.
    bool submit(void* stream, const std::map<std::string, void*>& addresses) {
        using Submit = void (*)(void*, void (*)(void*), void*, void (*)(void*));
        void* driver = stream ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) : nullptr;
        const auto give = driver ? reinterpret_cast<Submit>(dlsym(driver, "standin_submit")) : nullptr;
        if (driver) dlclose(driver);
        if (!give) return run(addresses);
        auto* call = new Call{this, addresses, std::make_shared<bool>(true)};
        const auto done = call->done;
        give(stream, [](void* of) { static_cast<Call*>(of)->run(); }, call, [](void* of) { delete static_cast<Call*>(of); });
        return *done;
    }

    struct Call {
        Context* context;
        std::map<std::string, void*> addresses;
        std::shared_ptr<bool> done;
        void run() { *done = context->run(addresses); }
    };

    bool run(const std::map<std::string, void*>& addresses) {
        const auto at = [&](const std::string& name) {
            const auto found = addresses.find(name);
            return found == addresses.end() ? nullptr : found->second;
        };
        for (const auto& input : plan_.graph.inputs) {
            if (!known(shape_of(input.name))) return fail("the shape of input " + input.name + " is not set");
            if (!at(input.name)) return fail("the address of input " + input.name + " is not set");
        }
        const TensorInfo& from = plan_.graph.inputs.at(0);
        const Elements in(at(from.name), from.type);
        const int64_t available = count(shape_of(from.name));
        for (const auto& output : plan_.graph.outputs) {
            Shape shape = shape_of(output.name);
            void* to = at(output.name);
            if (!known(shape)) to = sized_by_data(output, in, available, shape, to);
            if (!to) return fail("the address of output " + output.name + " is not set");
            Elements out(to, output.type);
            for (int64_t i = 0; i < count(shape); ++i) out.set(i, 2 * in.get(i % available));
        }
        return !profiler_ || !emit_ || report();
    }

    /// An output that has as many entries as there are positive numbers: its caller learns that only now.
    void* sized_by_data(const TensorInfo& output, const Elements& in, int64_t available, Shape& shape, void* address) {
        int64_t positive = 0;
        for (int64_t i = 0; i < available; ++i) positive += in.get(i) > 0;
        for (auto& d : shape) d = d < 0 ? positive : d;
        const auto found = allocators_.find(output.name);
        if (found == allocators_.end() || !found->second) return address;
        const uint64_t bytes = static_cast<uint64_t>(count(shape) * Elements::bytes_of(output.type));
#if FAMILY == 8
        void* memory = found->second->reallocateOutput(output.name.c_str(), address, bytes, 256);
#else
        void* memory = found->second->reallocateOutputAsync(output.name.c_str(), address, bytes, 256, nullptr);
#endif
        Dims now = dims(shape);
        found->second->notifyShape(output.name.c_str(), &now);
        return memory;
    }

    bool fail(const std::string& text) const {
        host_.fail(INVALID_STATE, text);
        return false;
    }

    bool report() {
        if (!profiler_) return false;
        float ms = 0;
        for (const auto& layer : plan_.graph.layers) profiler_->reportLayerTime(layer.name.c_str(), ms += 0.25f);
        return true;
    }

    void introduce_profiler() {
#if FAMILY > 10
        introduce(profiler_, "IProfiler", true);
#endif
    }

    Host host_;
    std::shared_ptr<const Plan> shared_;
    const Plan& plan_;
    size_t profile_ = 0;
    std::map<std::string, Shape> shapes_;
    std::map<std::string, void*> addresses_;
    std::map<std::string, IOutputAllocator*> allocators_;
    IProfiler* profiler_ = nullptr;
    bool emit_ = true;
    Memory memory_;
    Life life_;
};
