// Stands in for libnvinfer_plugin: see base.h.
#include "base.h"

EXPORT bool initLibNvInferPlugins(void* logger, const char* space) {
    note(std::string("plugins of '") + space + "'");
    if (setting("plugins") == "fail") {
        static_cast<ILogger*>(logger)->log(ILogger_Severity_kERROR, "stand-in: no plugins, as asked");
        return false;
    }
    return true;
}
