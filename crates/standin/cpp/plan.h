// The bytes of an engine: a beginning as plans have it, a length, lines of text, a checksum.
#pragma once

#include <sstream>

#include "graph.h"

struct Range {
    std::string input;
    Shape of[3];
};

struct Plan {
    std::string version = VERSION_TEXT;
    std::string device = device_here();
    bool detailed = false;
    bool refit = false;
    bool host_code = false;
    Graph graph;
    std::vector<std::vector<Range>> profiles;

    static std::string device_here() {
        const std::string asked = setting("device");
        return asked.empty() ? "Stand-in GPU" : asked;
    }

    std::string bytes() const {
        std::ostringstream out;
        out << "version\t" << version << "\ndevice\t" << device << "\ndetailed\t" << detailed << "\nrefit\t" << refit
            << "\nhost-code\t" << host_code << "\n";
        for (const auto& layer : graph.layers) {
            out << "layer\t" << layer.name << "\t" << layer.type << "\t" << layer.precision << "\n";
        }
        for (const auto& tensor : graph.inputs) put(out, "input", tensor);
        for (const auto& tensor : graph.outputs) put(out, "output", tensor);
        for (const auto& profile : profiles) {
            out << "profile\n";
            for (const auto& range : profile) {
                out << "range\t" << range.input;
                for (const auto& shape : range.of) out << "\t" << joined(shape);
                out << "\n";
            }
        }
        const std::string text = out.str();
        return mark(text.size()) + word(text.size()) + text + word(checksum(text));
    }

    /// Empty when read; otherwise what is wrong.
    std::string read(const std::string& bytes) {
        const size_t head = MARK + 8;
        if (bytes.compare(0, 4, "ftrt") != 0) return "Magic tag does not match: this is no engine";
        if (bytes.size() < head || bytes.size() != head + word(bytes, head - 8) + 8) {
            return "the serialized engine is truncated, it has " + std::to_string(bytes.size()) + " bytes";
        }
        const std::string text = bytes.substr(head, bytes.size() - head - 8);
        if (checksum(text) != word(bytes, bytes.size() - 8)) return "the serialized engine is damaged";
        std::istringstream lines(text);
        std::string line;
        while (std::getline(lines, line)) take(split(line, '\t'));
        return "";
    }

    static std::vector<std::string> split(const std::string& text, char by) {
        std::vector<std::string> out(1);
        for (const char c : text) {
            if (c == by) out.emplace_back();
            else out.back() += c;
        }
        return out;
    }

    static std::string joined(const Shape& shape) {
        std::string out;
        for (const int64_t d : shape) out += (out.empty() ? "" : ",") + std::to_string(d);
        return out;
    }

private:
    /// As a plan begins: from 8.6 on its own length and its version are where these are.
    static constexpr size_t MARK = 28;

    static std::string mark(size_t text) {
        std::string out("ftrt\0\0\0\0stand-in", 16);
        out += word(MARK + 8 + text + 8);
        for (const auto& part : split(VERSION_TEXT, '.')) out += static_cast<char>(std::stoi(part));
        out.resize(MARK);
        return out;
    }

    static void put(std::ostringstream& out, const char* kind, const TensorInfo& tensor) {
        out << kind << "\t" << tensor.name << "\t" << tensor.type << "\t" << joined(tensor.dims) << "\t";
        for (const auto& symbol : tensor.symbols) out << symbol << ",";
        out << "\n";
    }

    void take(const std::vector<std::string>& parts) {
        const std::string& kind = parts[0];
        if (kind == "version") version = parts[1];
        if (kind == "device") device = parts[1];
        if (kind == "detailed") detailed = parts[1] == "1";
        if (kind == "refit") refit = parts[1] == "1";
        if (kind == "host-code") host_code = parts[1] == "1";
        if (kind == "layer") graph.layers.push_back({parts[1], parts[2], parts[3]});
        if (kind == "profile") profiles.emplace_back();
        if (kind == "range") {
            profiles.back().push_back({parts[1], {numbers(parts[2]), numbers(parts[3]), numbers(parts[4])}});
        }
        if (kind == "input" || kind == "output") {
            TensorInfo tensor{parts[1], std::stoi(parts[2]), numbers(parts[3]), split(parts[4], ',')};
            tensor.symbols.resize(tensor.dims.size());
            (kind == "input" ? graph.inputs : graph.outputs).push_back(tensor);
        }
    }

    static Shape numbers(const std::string& text) {
        Shape out;
        if (text.empty()) return out;
        for (const auto& part : split(text, ',')) out.push_back(std::stoll(part));
        return out;
    }

    static std::string word(uint64_t value) {
        std::string out(8, '\0');
        std::memcpy(&out[0], &value, 8);
        return out;
    }

    static uint64_t word(const std::string& bytes, size_t at) {
        uint64_t out = 0;
        std::memcpy(&out, bytes.data() + at, 8);
        return out;
    }

    static uint64_t checksum(const std::string& text) {
        uint64_t out = 1469598103934665603u;
        for (const char c : text) out = (out ^ static_cast<uint8_t>(c)) * 1099511628211u;
        return out;
    }
};
