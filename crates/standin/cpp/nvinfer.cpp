// Stands in for libnvinfer: see base.h. Here are the functions that it exports.
#include "engine.h"
#ifndef LEAN
#include "builder.h"
#endif

namespace {

/// Refuses as the test asked, or as TensorRT does when the caller was made for another version.
bool refused(const char* what, ILogger* logger, int32_t version, void*& instead) {
#if FAMILY > 10
    introduce(logger, "ILogger", true);
#endif
    const std::string asked = setting(std::string("create-") + what);
    if (asked.empty() && version == VERSION_NUMBER) return false;
    const std::string why = asked.empty() ? "it was asked for as version " + std::to_string(version) : "CUDA error 35";
    logger->log(ILogger_Severity_kERROR, (std::string("stand-in: no ") + what + ": " + why).c_str());
    instead = asked == "null" ? nullptr : reinterpret_cast<void*>(std::strtoul(asked.c_str(), nullptr, 0));
    return true;
}

template <class Impl>
void* create(const char* what, void* logger, int32_t version) {
    auto* to = static_cast<ILogger*>(logger);
    void* instead = nullptr;
    if (refused(what, to, version, instead)) return instead;
    to->log(ILogger_Severity_kINFO, "stand-in of TensorRT " VERSION_TEXT);
    return make<Impl>(to);
}

}  // namespace

EXPORT int32_t getInferLibVersion() { return static_cast<int32_t>(number("version", VERSION_NUMBER)); }

EXPORT void* createInferRuntime_INTERNAL(void* logger, int32_t version) { return create<Runtime>("runtime", logger, version); }

#ifndef LEAN
EXPORT void* createInferBuilder_INTERNAL(void* logger, int32_t version) { return create<Builder>("builder", logger, version); }
#endif
