// Stands in for libnvonnxparser: see base.h.
//
// A node of a domain that is not ONNX's own is refused as the real parser refuses an operator that it does not know.
#include <deque>
#include <iterator>

#include "onnx.h"

namespace {

struct Refusal : IParserError {
    Refusal(int32_t code, std::string reason, int32_t index, Node node)
        : code_(code), reason_(std::move(reason)), index_(index), node_(std::move(node)) {}

    int32_t code() { return code_; }
    const char* desc() { return reason_.c_str(); }
    int32_t node() { return index_; }
    const char* nodeName() { return node_.name.c_str(); }
    const char* nodeOperator() { return node_.type.c_str(); }

private:
    int32_t code_;
    std::string reason_;
    int32_t index_;
    Node node_;
};

class Parser : public IParser {
public:
    Parser(NetworkFace* network, ILogger* logger) : network_(network), logger_(logger), life_("IParser", network->life()) {}

    bool parse(void* data, uint64_t size, const char* path) {
        const Onnx model(static_cast<const char*>(data), size);
        errors_.clear();
        if (model.broken) return refuse(4, std::string("Failed to parse the ONNX model ") + (path ? path : ""), -1, {});
        for (size_t i = 0; i < model.nodes.size(); ++i) {
            const Node& node = model.nodes[i];
            const bool known = node.domain.empty() || node.domain == "ai.onnx";
            if (!known || setting("parse") == "refuse") {
                refuse(8, "No importer registered for op: " + node.type, static_cast<int32_t>(i), node);
            }
        }
        if (!errors_.empty()) return false;
        Graph graph = model.graph;
        for (const Node& node : model.nodes) graph.layers.push_back({node.name, node.type, "Float"});
        network_->adopt(std::move(graph), weights_);
        return true;
    }

    bool parseFromFile(const char* path, int32_t) {
        std::ifstream file(path, std::ios::binary);
        if (!file) return refuse(3, std::string("Could not open file ") + path, -1, {});
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        return parse(const_cast<char*>(bytes.data()), bytes.size(), path);
    }

    int32_t getNbErrors() { return static_cast<int32_t>(errors_.size()); }

    void* getError(int32_t index) {
        if (index < 0 || index >= getNbErrors()) return nullptr;
        return static_cast<IParserError*>(&errors_[static_cast<size_t>(index)]);
    }

private:
    bool refuse(int32_t code, const std::string& reason, int32_t index, const Node& node) {
        logger_->log(ILogger_Severity_kERROR, reason.c_str());
        errors_.emplace_back(code, reason, index, node);
        return false;
    }

    NetworkFace* network_;
    ILogger* logger_;
    std::deque<Refusal> errors_;
    std::shared_ptr<int> weights_ = std::make_shared<int>(0);
    Life life_;
};

}  // namespace

EXPORT int32_t getNvOnnxParserVersion() { return static_cast<int32_t>(number("parser-version", 100)); }

EXPORT void* createNvOnnxParser_INTERNAL(void* network, void* logger, int32_t version) {
    auto* to = static_cast<ILogger*>(logger);
    if (setting("create-parser") == "null") {
        to->log(ILogger_Severity_kERROR, "stand-in: no parser, as asked");
        return nullptr;
    }
    if (version != 100) note("! a parser of version " + std::to_string(version) + " was asked for");
    // The methods of the network that is behind the public object.
    return static_cast<IParser*>(new Parser(static_cast<NetworkFace*>(Public<VNetworkDefinition>::of(network)), to));
}
