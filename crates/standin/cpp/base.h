// A stand-in for TensorRT, so that a machine without a GPU can drive the code that calls it.
//
// It exists because that code finds C++ methods by their position. A mock in Rust would agree with whatever we believe
// about calling C++; these classes are laid out by a C++ compiler, in the order that `facts.json` gives (`layout.h` is
// generated from it for one version), and a call to a place where nothing of ours is ends in `stray`, with a name. The
// "device" is host memory and an inference is `out = 2 * in`, so results can be checked.
//
// How it misbehaves is read from `standin.conf` beside the library, one `key=value` a line, at the moment of use. What it
// sees goes to `standin.log` there: `+ IRuntime` and `- IRuntime` as objects come and go, and a line that begins with `!`
// for every breach of TensorRT's rules (a parent destroyed before its child, a place that is not there called).
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

/// A file in the folder of this library.
inline std::string beside(const char* name) {
    static const int anchor = 0;
    Dl_info info{};
    dladdr(&anchor, &info);
    const std::string path = info.dli_fname ? info.dli_fname : "";
    return path.substr(0, path.rfind('/') + 1) + name;
}

/// What the test asked for under this key; empty if nothing.
inline std::string setting(const std::string& key) {
    std::ifstream file(beside("standin.conf"));
    std::string line;
    while (std::getline(file, line)) {
        if (line.compare(0, key.size() + 1, key + "=") == 0) return line.substr(key.size() + 1);
    }
    return "";
}

inline long number(const std::string& key, long otherwise) {
    const std::string text = setting(key);
    return text.empty() ? otherwise : std::strtol(text.c_str(), nullptr, 0);
}

/// A line for the test to read, whole even if the process dies next.
inline void note(const std::string& text) {
    const int file = open(beside("standin.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) return;
    const std::string line = text + "\n";
    if (write(file, line.data(), line.size()) < 0) std::perror("standin.log");
    close(file);
}

/// A place in a table was called where this version has nothing, or nothing that we know.
[[noreturn]] inline void stray(const char* what) {
    note(std::string("! ") + what + " was called");
    std::fprintf(stderr, "stand-in: %s was called\n", what);
    std::abort();
}

struct Dims32 {
    int32_t nbDims;
    int32_t d[8];
};

struct Dims64 {
    int32_t nbDims;
    int64_t d[8];
};

struct InterfaceInfo {
    const char* kind;
    int32_t major;
    int32_t minor;
};

#include "layout.h"

/// TensorRT's numbers of the failures that we know; the same in every major.
enum ErrorCode : int32_t {
    UNSPECIFIED_ERROR = 1,
    INTERNAL_ERROR = 2,
    INVALID_ARGUMENT = 3,
    FAILED_ALLOCATION = 5,
    INVALID_STATE = 9,
};

#if FAMILY == 8
using Dims = Dims32;
#else
using Dims = Dims64;
#endif

using Shape = std::vector<int64_t>;

inline Dims dims(const Shape& shape) {
    Dims out{};
    out.nbDims = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) out.d[i] = static_cast<decltype(out.d[0] + 0)>(shape[i]);
    return out;
}

inline Shape shape(const Dims& dims) {
    return dims.nbDims < 0 ? Shape() : Shape(dims.d, dims.d + dims.nbDims);
}

/// An object's life, in the log. A parent that goes first is a breach.
class Life {
public:
    Life(const char* kind, Life* parent) : kind_(kind), parent_(parent ? parent->children_ : nullptr) {
        if (parent_) ++*parent_;
        note(std::string("+ ") + kind_);
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;
    ~Life() {
        if (*children_ > 0) {
            note(std::string("! ") + kind_ + " destroyed before " + std::to_string(*children_) + " of its own");
        }
        if (parent_) --*parent_;
        note(std::string("- ") + kind_);
    }

private:
    const char* kind_;
    std::shared_ptr<std::atomic<int>> children_ = std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<std::atomic<int>> parent_;
};

/// What callers hold: two words, the second leads to the methods, the first to the destructors.
template <class Impl>
struct Public {
    explicit Public(Impl* object) : impl(object) {}
    virtual ~Public() { delete impl; }
    Impl* impl;

    static Impl* of(void* object) { return static_cast<Public*>(object)->impl; }
};

template <class Impl, class... Args>
Public<Impl>* make(Args&&... args) {
    auto* object = new Public<Impl>(new Impl(std::forward<Args>(args)...));
    static_assert(sizeof(*object) == 16, "a public object is two words");
    return object;
}

/// Asks one of the user's objects what it is, in the versions where it has to know.
template <class Interface>
void introduce(Interface* object, const char* kind, bool versioned) {
#if FAMILY > 8
    if (object && versioned) {
        const InterfaceInfo info = object->getInterfaceInfo();
        if (object->getAPILanguage() != 0 || std::string(info.kind) != kind || info.major != 1 || info.minor != 0) {
            note(std::string("! an object that should be ") + kind + " says it is " + info.kind);
        }
    }
#else
    (void)object, (void)kind, (void)versioned;
#endif
}

/// Whom to tell and where memory comes from; handed down from parent to child.
struct Host {
    ILogger* logger = nullptr;
    IErrorRecorder* recorder = nullptr;
    IGpuAllocator* allocator = nullptr;

    void say(int32_t severity, const std::string& text) const { logger->log(severity, text.c_str()); }

    void fail(int32_t code, const std::string& text) const {
        say(ILogger_Severity_kERROR, text);
        if (recorder) recorder->reportError(code, text.c_str());
    }

    void record(IErrorRecorder* to) {
        introduce(to, "IErrorRecorder", true);
        if (to) to->incRefCount();
        if (recorder) recorder->decRefCount();
        recorder = to;
    }

    void allocate_with(IGpuAllocator* from) {
        introduce(from, "IGpuAllocator", true);
        allocator = from;
    }
};

/// A piece of "device" memory.
class Memory {
public:
    Memory(const Host& host, uint64_t bytes) : allocator_(host.allocator) {
#if FAMILY == 8
        data_ = allocator_ ? allocator_->allocate(bytes, 256, 0) : std::malloc(bytes);
#else
        data_ = allocator_ ? allocator_->allocateAsync(bytes, 256, 0, nullptr) : std::malloc(bytes);
#endif
        if (!data_) {
            host.fail(FAILED_ALLOCATION,
                      "Requested amount of GPU memory (" + std::to_string(bytes) +
                          " bytes) could not be allocated. There may not be enough free memory for allocation to succeed.");
        }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        if (!allocator_) std::free(data_);
        else if (data_ && !give_back()) note("! the allocator did not know its own memory");
    }

    explicit operator bool() const { return data_ != nullptr; }

private:
    bool give_back() {
#if FAMILY == 8
        return allocator_->deallocate(data_);
#else
        return allocator_->deallocateAsync(data_, nullptr);
#endif
    }

    IGpuAllocator* allocator_;
    void* data_;
};
