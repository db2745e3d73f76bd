#include "peers/tflite_peer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "peers/masked_cpuid.h"
#include "peers/simd_limit.h"
#include "reef/cpu/kernel_set.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace lite {

// Opaque in C as well.
struct Model;
struct Options;
struct Interpreter;
struct Tensor;
struct Delegate;

/// What the delegate's options start with since 2.3; zeros behind it are what later versions have
/// by default, or leave a feature off.
struct XnnpackOptions {
    std::int32_t threads = 1;
    std::uint32_t flags = signed_8_bit | unsigned_8_bit;
    std::array<std::byte, 248> later{};

    static constexpr std::uint32_t signed_8_bit = 1, unsigned_8_bit = 2;
};

using Reporter = void (*)(void* user, const char* format, std::va_list arguments);

struct Library {
    const char* (*version)() = nullptr;
    Model* (*model_create)(const void* bytes, std::size_t size) = nullptr;
    Model* (*model_of_file)(const char* path) = nullptr;
    void (*model_delete)(Model*) = nullptr;
    Options* (*options_create)() = nullptr;
    void (*options_delete)(Options*) = nullptr;
    void (*options_threads)(Options*, std::int32_t) = nullptr;
    void (*options_delegate)(Options*, Delegate*) = nullptr;
    void (*options_reporter)(Options*, Reporter, void* user) = nullptr;
    Interpreter* (*create)(const Model*, const Options*) = nullptr;
    void (*destroy)(Interpreter*) = nullptr;
    int (*allocate)(Interpreter*) = nullptr;
    int (*invoke)(Interpreter*) = nullptr;
    std::int32_t (*input_count)(const Interpreter*) = nullptr;
    Tensor* (*input)(const Interpreter*, std::int32_t) = nullptr;
    std::int32_t (*output_count)(const Interpreter*) = nullptr;
    const Tensor* (*output)(const Interpreter*, std::int32_t) = nullptr;
    std::size_t (*byte_size)(const Tensor*) = nullptr;
    void* (*data)(const Tensor*) = nullptr;
    Delegate* (*xnnpack_create)(const XnnpackOptions*) = nullptr;
    void (*xnnpack_delete)(Delegate*) = nullptr;

    std::string problem{};  ///< why it is not there

    Library();

  private:
    template <class Function>
    void find(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(::dlsym(library, name));
        if (function == nullptr && problem.empty())
            problem = fmt::format("REEF_TFLITE_LIBRARY has no {}", name);
    }
    void open(const char* file);
};

void Library::open(const char* file) {
    // It stays open: its threads may be about.
    void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        problem = fmt::format("REEF_TFLITE_LIBRARY does not open: {}", ::dlerror());
        return;
    }
    find(library, "TfLiteVersion", version);
    find(library, "TfLiteModelCreate", model_create);
    find(library, "TfLiteModelCreateFromFile", model_of_file);
    find(library, "TfLiteModelDelete", model_delete);
    find(library, "TfLiteInterpreterOptionsCreate", options_create);
    find(library, "TfLiteInterpreterOptionsDelete", options_delete);
    find(library, "TfLiteInterpreterOptionsSetNumThreads", options_threads);
    find(library, "TfLiteInterpreterOptionsAddDelegate", options_delegate);
    find(library, "TfLiteInterpreterOptionsSetErrorReporter", options_reporter);
    find(library, "TfLiteInterpreterCreate", create);
    find(library, "TfLiteInterpreterDelete", destroy);
    find(library, "TfLiteInterpreterAllocateTensors", allocate);
    find(library, "TfLiteInterpreterInvoke", invoke);
    find(library, "TfLiteInterpreterGetInputTensorCount", input_count);
    find(library, "TfLiteInterpreterGetInputTensor", input);
    find(library, "TfLiteInterpreterGetOutputTensorCount", output_count);
    find(library, "TfLiteInterpreterGetOutputTensor", output);
    find(library, "TfLiteTensorByteSize", byte_size);
    find(library, "TfLiteTensorData", data);
    // Debian's library is without.
    xnnpack_create =
        reinterpret_cast<decltype(xnnpack_create)>(::dlsym(library, "TfLiteXNNPackDelegateCreate"));
    if (xnnpack_create != nullptr) find(library, "TfLiteXNNPackDelegateDelete", xnnpack_delete);
}

Library::Library() {
    const char* file = std::getenv("REEF_TFLITE_LIBRARY");
    if (file == nullptr) {
        problem = "REEF_TFLITE_LIBRARY names no libtensorflowlite_c.so";
        return;
    }
    // With AVX-512 it knows no more than we do without a limit.
    if (!simd_is_limited() || cpu::simd_target().starts_with("AVX3")) {
        open(file);
        return;
    }
    // Its kernels and XNNPACK ask one table, filled by the first who needs it.
    const std::size_t answered = with_masked_cpuid(cpu::simd_target(), [&] {
        open(file);
        const XnnpackOptions options;
        if (problem.empty() && xnnpack_create != nullptr) xnnpack_delete(xnnpack_create(&options));
    });
    if (answered == 0 && problem.empty())
        problem = fmt::format("it cannot be limited to {}, as REEF_SIMD asks", cpu::simd_target());
}

const Library& library() {
    static const Library opened;
    return opened;
}

std::string printed(const char* format, std::va_list arguments) {
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    return text.data();
}

}  // namespace lite

struct TflitePeer::Impl {
    std::vector<std::byte> file{};  ///< none: the library has mapped it
    std::string said{};             ///< the library's first error
    std::unique_ptr<lite::Model, void (*)(lite::Model*)> model{nullptr,
                                                               lite::library().model_delete};
    std::unique_ptr<lite::Delegate, void (*)(lite::Delegate*)> delegate{
        nullptr, lite::library().xnnpack_delete};
    std::unique_ptr<lite::Interpreter, void (*)(lite::Interpreter*)> interpreter{
        nullptr, lite::library().destroy};

    static void report(void* user, const char* format, std::va_list arguments) {
        auto& said = static_cast<Impl*>(user)->said;
        if (said.empty()) said = lite::printed(format, arguments);
    }
    Status open(lite::Model* opened, TfliteKernels kernels, int threads);
};

Status TflitePeer::Impl::open(lite::Model* opened, TfliteKernels kernels, int threads) {
    const lite::Library& calls = lite::library();
    model.reset(opened);
    if (model == nullptr) return fail(Cause::unsupported, "TensorFlow Lite does not read the file");
    if (kernels == TfliteKernels::xnnpack && calls.xnnpack_create == nullptr)
        return fail(Cause::unsupported, "REEF_TFLITE_LIBRARY has no TfLiteXNNPackDelegateCreate");
    const std::unique_ptr<lite::Options, void (*)(lite::Options*)> options(calls.options_create(),
                                                                           calls.options_delete);
    calls.options_threads(options.get(), threads);
    calls.options_reporter(options.get(), report, this);
    if (kernels == TfliteKernels::xnnpack) {
        const lite::XnnpackOptions xnnpack{.threads = threads};
        delegate.reset(calls.xnnpack_create(&xnnpack));
        calls.options_delegate(options.get(), delegate.get());
    }
    interpreter.reset(calls.create(model.get(), options.get()));
    if (interpreter == nullptr || calls.allocate(interpreter.get()) != 0)
        return fail(Cause::unsupported, fmt::format("TensorFlow Lite says: {}", said));
    return {};
}

TflitePeer::TflitePeer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TflitePeer::TflitePeer(TflitePeer&&) noexcept = default;
TflitePeer& TflitePeer::operator=(TflitePeer&&) noexcept = default;
TflitePeer::~TflitePeer() = default;

Result<TflitePeer> TflitePeer::create(const model::Model& model, TfliteKernels kernels,
                                      int threads) {
    if (const std::string reason = why_no_tflite(); !reason.empty())
        return fail(Cause::not_found, reason);
    auto impl = std::make_unique<Impl>(Impl{.file = REEF_TRY(model::write_tflite(model))});
    lite::Model* opened = lite::library().model_create(impl->file.data(), impl->file.size());
    REEF_CHECK(impl->open(opened, kernels, threads));
    return TflitePeer(std::move(impl));
}

Result<TflitePeer> TflitePeer::open(const std::string& path, TfliteKernels kernels, int threads) {
    if (const std::string reason = why_no_tflite(); !reason.empty())
        return fail(Cause::not_found, reason);
    auto impl = std::make_unique<Impl>();
    REEF_CHECK(impl->open(lite::library().model_of_file(path.c_str()), kernels, threads));
    return TflitePeer(std::move(impl));
}

std::size_t TflitePeer::input_count() const {
    return static_cast<std::size_t>(lite::library().input_count(impl_->interpreter.get()));
}

std::size_t TflitePeer::output_count() const {
    return static_cast<std::size_t>(lite::library().output_count(impl_->interpreter.get()));
}

MutableBytes TflitePeer::input(std::size_t index) {
    const lite::Tensor* tensor =
        lite::library().input(impl_->interpreter.get(), static_cast<std::int32_t>(index));
    return {static_cast<std::byte*>(lite::library().data(tensor)),
            lite::library().byte_size(tensor)};
}

Bytes TflitePeer::output(std::size_t index) const {
    const lite::Tensor* tensor =
        lite::library().output(impl_->interpreter.get(), static_cast<std::int32_t>(index));
    return {static_cast<const std::byte*>(lite::library().data(tensor)),
            lite::library().byte_size(tensor)};
}

std::vector<Bytes> TflitePeer::outputs() const {
    std::vector<Bytes> all;
    for (std::size_t i = 0; i < output_count(); ++i) all.push_back(output(i));
    return all;
}

Status TflitePeer::run() {
    impl_->said.clear();
    if (lite::library().invoke(impl_->interpreter.get()) != 0)
        return fail(Cause::io_failed, fmt::format("TensorFlow Lite says: {}", impl_->said));
    return {};
}

std::string why_no_tflite() {
    return lite::library().problem;
}

std::string tflite_version() {
    return lite::library().version();
}

}  // namespace reef::peers
