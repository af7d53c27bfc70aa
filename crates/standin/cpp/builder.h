// Building: networks, their options, and a build that asks every object of the user's for its part.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "memory.h"
#include "plan.h"

class Tensor : public VTensor {
public:
    explicit Tensor(TensorInfo& info) : info_(info) {}

    const char* getName() { return info_.name.c_str(); }
    Dims getDimensions() { return dims(info_.dims); }
    int32_t getType() { return info_.type; }
    int32_t getLocation() { return 0; }
    uint32_t getAllowedFormats() { return 1; }

private:
    TensorInfo& info_;
};

class Network : public NetworkFace {
public:
    explicit Network(Life* builder) : life_("INetworkDefinition", builder) {}

    void adopt(Graph from, std::weak_ptr<int> weights) override {
        graph = std::move(from);
        weights_ = weights;
        for (auto& tensor : graph.inputs) inputs_.emplace_back(make<Tensor>(tensor));
        for (auto& tensor : graph.outputs) outputs_.emplace_back(make<Tensor>(tensor));
    }
    Life* life() override { return &life_; }
    bool has_weights() const { return !weights_.expired(); }

    int32_t getNbLayers() { return static_cast<int32_t>(graph.layers.size()); }
    int32_t getNbInputs() { return static_cast<int32_t>(inputs_.size()); }
    void* getInput(int32_t i) { return i < getNbInputs() ? inputs_[static_cast<size_t>(i)].get() : nullptr; }
    int32_t getNbOutputs() { return static_cast<int32_t>(outputs_.size()); }
    void* getOutput(int32_t i) { return i < getNbOutputs() ? outputs_[static_cast<size_t>(i)].get() : nullptr; }

    Graph graph;

private:
    std::vector<std::unique_ptr<Public<Tensor>>> inputs_, outputs_;
    std::weak_ptr<int> weights_;
    Life life_;
};

/// Belongs to its builder, which destroys it.
class Profile : public VOptimizationProfile {
public:
    Profile() : life_("IOptimizationProfile", nullptr) {}
    ~Profile() {
        if (!released) note("! IOptimizationProfile destroyed, which is its builder's to do");
    }

    bool setDimensions(const char* name, int32_t which, Dims32 to) { return set(name, which, Shape(to.d, to.d + to.nbDims)); }
    bool setDimensions(const char* name, int32_t which, void* to) { return set(name, which, shape(*static_cast<Dims*>(to))); }
    bool isValid() {
        for (const auto& range : ranges) {
            for (size_t i = 0; i < range.of[1].size(); ++i) {
                if (range.of[0].size() != range.of[1].size() || range.of[2].size() != range.of[1].size()) return false;
                if (range.of[0][i] > range.of[1][i] || range.of[1][i] > range.of[2][i]) return false;
            }
        }
        return true;
    }

    std::vector<Range> ranges;
    bool released = false;

private:
    bool set(const std::string& name, int32_t which, const Shape& to) {
        if (which < 0 || which > 2 || to.empty()) return false;
        auto found = std::find_if(ranges.begin(), ranges.end(), [&](const Range& range) { return range.input == name; });
        if (found == ranges.end()) found = ranges.insert(ranges.end(), Range{name, {}});
        found->of[which] = to;
        return true;
    }

    Life life_;
};

/// Belongs to nobody, but a configuration that uses it needs it to be there.
class Timing : public VTimingCache {
public:
    explicit Timing(std::string bytes) : bytes_(std::move(bytes)), life_("ITimingCache", nullptr) {}

    void* serialize() { return make<Bytes>(bytes_); }
    bool combine(void* other, bool) {
        bytes_ += of(other)->bytes_;
        return true;
    }
    void learn(const std::string& line) { bytes_ += line; }
    std::weak_ptr<int> alive() const { return alive_; }
    static Timing* of(void* object) { return Public<Timing>::of(object); }

private:
    std::string bytes_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
    Life life_;
};

class Config : public VBuilderConfig {
public:
    explicit Config(Life* builder) : life_("IBuilderConfig", builder) {}

    void setAvgTimingIterations(int32_t) {}
#if FAMILY < 11
    void setInt8Calibrator(void* from) {
        calibrator = static_cast<IInt8EntropyCalibrator2*>(from);
#if FAMILY == 10
        const bool entropy = calibrator && calibrator->getAlgorithm() == CalibrationAlgoType_kENTROPY_CALIBRATION_2;
        introduce(calibrator, entropy ? "IInt8EntropyCalibrator2" : "IInt8MinMaxCalibrator", true);
#endif
    }
    IInt8EntropyCalibrator2* calibrator = nullptr;
#endif
    void setMaxWorkspaceSize(uint64_t bytes) { pools[0] = bytes; }
    uint64_t getMaxWorkspaceSize() { return pools[0]; }
    void setMemoryPoolLimit(int32_t pool, uint64_t bytes) { pools[pool] = bytes; }
    uint64_t getMemoryPoolLimit(int32_t pool) { return pools[pool]; }
    void setFlag(int32_t flag) { flags.insert(flag); }
    void clearFlag(int32_t flag) { flags.erase(flag); }
    void setDLACore(int32_t) {}
    void setDefaultDeviceType(int32_t) {}
    int32_t addOptimizationProfile(void* profile) {
        if (!Public<Profile>::of(profile)->isValid()) return -1;
        profiles.push_back(Public<Profile>::of(profile));
        return static_cast<int32_t>(profiles.size()) - 1;
    }
    void setProfilingVerbosity(int32_t to) { detailed = to == ProfilingVerbosity_kDETAILED; }
    bool setCalibrationProfile(void*) { return true; }
    bool setTacticSources(uint32_t) { return true; }
    void* createTimingCache(void* data, uint64_t size) {
        return make<Timing>(std::string(static_cast<char*>(data), data ? size : 0));
    }
    bool setTimingCache(void* cache, bool) {
        timing_ = Timing::of(cache);
        timing_alive_ = timing_->alive();
        return true;
    }
    void learn(const std::string& line) {
        if (timing_ && timing_alive_.expired()) note("! the timing cache of a configuration is gone");
        else if (timing_) timing_->learn(line);
    }
    void setBuilderOptimizationLevel(int32_t) {}
    void setHardwareCompatibilityLevel(int32_t) {}
#if FAMILY == 11
    bool setMaxAuxStreams(int32_t) { return true; }
#else
    void setMaxAuxStreams(int32_t) {}
#endif
#if FAMILY > 8
    void setProgressMonitor(void* to) {
        monitor = static_cast<IProgressMonitor*>(to);
        introduce(monitor, "IProgressMonitor", true);
    }
    IProgressMonitor* monitor = nullptr;
#endif

    bool flag(int32_t which) const { return flags.count(which) > 0; }

    std::map<int32_t, uint64_t> pools{{0, 1 << 20}};
    std::set<int32_t> flags;
    std::vector<Profile*> profiles;
    bool detailed = false;

private:
    Timing* timing_ = nullptr;
    std::weak_ptr<int> timing_alive_;
    Life life_;
};

/// One build. Its work is done on a thread of its own, as TensorRT does most of it.
class Build {
public:
    Build(const Host& host, Network& network, Config& config) : host_(host), network_(network), config_(config) {}

    void* run() {
        bool done = false;
        std::thread([&] { done = check() && steps() && reserve() && calibrate(); }).join();
        return done ? make<Bytes>(plan()) : nullptr;
    }

private:
    bool check() {
        host_.say(ILogger_Severity_kINFO, "stand-in: building " + std::to_string(network_.getNbLayers()) + " layers");
        if (!network_.has_weights()) {
            note("! the parser of a network was destroyed before the network was built");
            return fail(INVALID_STATE, "the weights of the network are gone");
        }
        // Until somebody kills it, or changes the setting.
        while (setting("build") == "hang") std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (setting("build") == "fail") {
            const auto& layers = network_.graph.layers;
            const std::string name = layers.empty() ? "?" : layers.back().name;
            return fail(INTERNAL_ERROR, "Could not find any implementation for node " + name + ".");
        }
        for (const auto& input : network_.graph.inputs) {
            const bool free = std::any_of(input.dims.begin(), input.dims.end(), [](int64_t d) { return d < 0; });
            if (free && config_.profiles.empty()) {
                return fail(INVALID_ARGUMENT, "Network has dynamic or shape inputs, but no optimization profile "
                                                         "has been defined: " + input.name);
            }
        }
        return true;
    }

    bool steps() {
#if FAMILY > 8
        if (!config_.monitor) return true;
        bool on = true;
        config_.monitor->phaseStart("Building Engine", nullptr, 1);
        config_.monitor->phaseStart("Tactic Selection", "Building Engine", network_.getNbLayers());
        for (int32_t i = 0; on && i < network_.getNbLayers(); ++i) on = config_.monitor->stepComplete("Tactic Selection", i);
        config_.monitor->phaseFinish("Tactic Selection");
        on = on && config_.monitor->stepComplete("Building Engine", 0);
        config_.monitor->phaseFinish("Building Engine");
        return on || fail(UNSPECIFIED_ERROR, "the build was cancelled by its progress monitor");
#else
        return true;
#endif
    }

    bool reserve() {
        const Memory workspace(host_, config_.pools[0]);
        return static_cast<bool>(workspace);
    }

    bool calibrate() {
#if FAMILY < 11
        auto* calibrator = config_.calibrator;
        if (!calibrator || !config_.flag(BuilderFlag_kINT8)) return true;
        uint64_t size = 0;
        const void* cache = calibrator->readCalibrationCache(&size);
        if (cache && size) {
            host_.say(ILogger_Severity_kINFO, "Calibrated from cache: " + std::string(static_cast<const char*>(cache), size));
            calibrated_ = true;
            return true;
        }
        std::vector<const char*> names;
        for (const auto& input : network_.graph.inputs) names.push_back(input.name.c_str());
        std::vector<void*> addresses(names.size());
        int batches = 0;
        double largest = 0;
        while (calibrator->getBatch(addresses.data(), names.data(), static_cast<int32_t>(names.size()))) {
            // The first number of each image of the batch.
            for (int32_t i = 0; i < calibrator->getBatchSize(); ++i) {
                largest = std::max(largest, static_cast<double>(static_cast<float*>(addresses[0])[i]));
            }
            ++batches;
        }
        if (!batches) return fail(INVALID_STATE, "Calibration failure occurred with no scaling factors detected.");
        std::ostringstream table;
        table << "TRT-" << VERSION_NUMBER << "-algorithm" << calibrator->getAlgorithm() << "\n"
              << names[0] << ": " << largest << " of " << batches << "\n";
        calibrator->writeCalibrationCache(const_cast<char*>(table.str().c_str()), table.str().size());
        calibrated_ = true;
#endif
        return true;
    }

    std::string plan() {
        Plan plan;
        plan.detailed = config_.detailed;
        plan.refit = config_.flag(BuilderFlag_kREFIT);
        plan.host_code = config_.flag(BuilderFlag_kVERSION_COMPATIBLE) && !config_.flag(BuilderFlag_kEXCLUDE_LEAN_RUNTIME);
        plan.graph = network_.graph;
        for (const auto* profile : config_.profiles) plan.profiles.push_back(profile->ranges);
        auto& layers = plan.graph.layers;
        for (auto& layer : layers) layer.precision = precision();
        if (precision() != "Float" && !layers.empty()) {
            layers.insert(layers.begin(), {"Reformatting CopyNode for Input Tensor 0 to " + layers[0].name, "Reformat", "Float"});
        }
        config_.learn("timed " + std::to_string(layers.size()) + "\n");
        return plan.bytes();
    }

    std::string precision() const {
        const auto& layers = network_.graph.layers;
        const bool explicit_ = std::any_of(layers.begin(), layers.end(),
                                           [](const LayerInfo& layer) { return layer.type == "QuantizeLinear"; });
        const bool asked = FAMILY == 11 || config_.flag(BuilderFlag_kINT8);
        if (asked && (explicit_ || calibrated_) && setting("int8") != "ignored") return "Int8";
        const auto& inputs = network_.graph.inputs;
        const bool half = FAMILY == 11 ? !inputs.empty() && inputs[0].type == DataType_kHALF : config_.flag(BuilderFlag_kFP16);
        return half ? "Half" : "Float";
    }

    bool fail(int32_t code, const std::string& text) const {
        host_.fail(code, text);
        return false;
    }

    Host host_;
    Network& network_;
    Config& config_;
    bool calibrated_ = false;
};

class Builder : public VBuilder {
public:
    explicit Builder(ILogger* logger) : life_("IBuilder", nullptr) { host_.logger = logger; }
    ~Builder() {
        for (auto& profile : profiles_) profile->impl->released = true;
        host_.record(nullptr);
    }

    bool platformHasFastFp16() { return true; }
    bool platformHasFastInt8() { return true; }
    int32_t getNbDLACores() { return 0; }
    void setGpuAllocator(void* allocator) { host_.allocate_with(static_cast<IGpuAllocator*>(allocator)); }
    void setErrorRecorder(void* recorder) { host_.record(static_cast<IErrorRecorder*>(recorder)); }
    bool setMaxThreads(int32_t threads) { return threads > 0; }
    void* createBuilderConfig() { return make<Config>(&life_); }
    void* createNetworkV2(uint32_t flags) {
        note("network flags " + std::to_string(flags));
        return make<Network>(&life_);
    }
    void* createOptimizationProfile() {
        profiles_.emplace_back(make<Profile>());
        return profiles_.back().get();
    }
    void* buildSerializedNetwork(void* network, void* config) {
        return Build(host_, *Public<Network>::of(network), *Public<Config>::of(config)).run();
    }

private:
    Host host_;
    std::vector<std::unique_ptr<Public<Profile>>> profiles_;
    Life life_;
};
