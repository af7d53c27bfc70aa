// What the parser hands to a network. The two are libraries of their own and share no symbols, so the parser reaches the
// network through two methods behind those of TensorRT's class.
#pragma once

#include "base.h"

struct TensorInfo {
    std::string name;
    int32_t type;
    /// -1 where it is free; then `symbols` may name it.
    Shape dims;
    std::vector<std::string> symbols;
};

struct LayerInfo {
    std::string name;
    std::string type;
    /// Float, Half or Int8; chosen by the build.
    std::string precision;
};

struct Graph {
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
    std::vector<LayerInfo> layers;
};

class NetworkFace : public VNetworkDefinition {
public:
    /// Takes what was parsed. The weights are the parser's, which has to be there when the network is built.
    virtual void adopt(Graph graph, std::weak_ptr<int> weights) = 0;
    virtual Life* life() = 0;
};
