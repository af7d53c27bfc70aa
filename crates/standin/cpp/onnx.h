// As much of ONNX as the stand-in needs: names, types and shapes of inputs and outputs, and the nodes.
#pragma once

#include <set>

#include "graph.h"

/// A protobuf message, field by field.
class Message {
public:
    Message(const char* data, size_t size) : at_(data), end_(data + size) {}

    /// Goes to the next field; false at the end or where it makes no sense, which `broken` tells apart.
    bool next() {
        if (at_ == end_ || broken) return false;
        const uint64_t key = varint();
        field = static_cast<int>(key >> 3);
        switch (key & 7) {
            case 0: value = varint(); break;
            case 1: skip(8); break;
            case 2: skip(varint()); break;
            case 5: skip(4); break;
            default: broken = true;
        }
        return !broken;
    }

    Message message() const { return Message(data_, size_); }
    std::string text() const { return std::string(data_, size_); }

    int field = 0;
    uint64_t value = 0;
    bool broken = false;

private:
    uint64_t varint() {
        uint64_t out = 0;
        for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
            const auto byte = static_cast<uint8_t>(*at_++);
            out |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (!(byte & 0x80)) return out;
        }
        broken = true;
        return 0;
    }

    void skip(uint64_t size) {
        if (size > static_cast<uint64_t>(end_ - at_)) {
            broken = true;
            return;
        }
        data_ = at_;
        size_ = size;
        at_ += size;
    }

    const char* at_;
    const char* end_;
    const char* data_ = nullptr;
    size_t size_ = 0;
};

struct Node {
    std::string name, type, domain;
};

struct Onnx {
    Graph graph;
    std::vector<Node> nodes;
    bool broken = false;

    Onnx(const char* data, size_t size) {
        Message model(data, size);
        bool found = false;
        while (model.next()) {
            if (model.field == 7) found = true, read_graph(model.message());
        }
        broken |= model.broken || !found;
        // Old files list the weights among the inputs.
        auto& inputs = graph.inputs;
        for (size_t i = inputs.size(); i-- > 0;) {
            if (weights_.count(inputs[i].name)) inputs.erase(inputs.begin() + static_cast<long>(i));
        }
    }

private:
    void read_graph(Message in) {
        while (in.next()) {
            if (in.field == 1) nodes.push_back(read_node(in.message()));
            if (in.field == 5) read_weights(in.message());
            if (in.field == 11) graph.inputs.push_back(read_value(in.message()));
            if (in.field == 12) graph.outputs.push_back(read_value(in.message()));
        }
        broken |= in.broken;
    }

    Node read_node(Message in) {
        Node out;
        while (in.next()) {
            if (in.field == 3) out.name = in.text();
            if (in.field == 4) out.type = in.text();
            if (in.field == 7) out.domain = in.text();
        }
        broken |= in.broken;
        return out;
    }

    void read_weights(Message in) {
        while (in.next()) {
            if (in.field == 8) weights_.insert(in.text());
        }
        broken |= in.broken;
    }

    TensorInfo read_value(Message in) {
        TensorInfo out{};
        while (in.next()) {
            if (in.field == 1) out.name = in.text();
            if (in.field != 2) continue;
            Message type = in.message();
            while (type.next()) {
                if (type.field == 1) read_tensor(type.message(), out);
            }
        }
        broken |= in.broken;
        return out;
    }

    void read_tensor(Message in, TensorInfo& out) {
        while (in.next()) {
            if (in.field == 1) out.type = type_of(in.value);
            if (in.field != 2) continue;
            Message dims = in.message();
            while (dims.next()) {
                Message dim = dims.message();
                out.dims.push_back(-1);
                out.symbols.emplace_back();
                while (dim.next()) {
                    if (dim.field == 1) out.dims.back() = static_cast<int64_t>(dim.value);
                    if (dim.field == 2) out.symbols.back() = dim.text();
                }
            }
        }
        broken |= in.broken;
    }

    /// TensorRT's number for ONNX's.
    static int32_t type_of(uint64_t onnx) {
        switch (onnx) {
            case 2: return DataType_kUINT8;
            case 3: return DataType_kINT8;
            case 6: return DataType_kINT32;
            // TensorRT 8 has no 64-bit numbers and makes them smaller.
            case 7: return FAMILY == 8 ? DataType_kINT32 : DataType_kINT64;
            case 9: return DataType_kBOOL;
            case 10: return DataType_kHALF;
            default: return DataType_kFLOAT;
        }
    }

    std::set<std::string> weights_;
};
