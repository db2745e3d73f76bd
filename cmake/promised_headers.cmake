# What Reef promises to programs that use the library: these headers are installed, compile alone
# without any other of Reef's, and have an example each in tests/api. All others in include/reef are
# doors between rooms and change without notice. cmake/exports.map names their symbols.
set(REEF_PROMISED_HEADERS
    apps/robotics.h
    base/bytes.h
    base/element_type.h
    base/file.h
    base/npy.h
    base/result.h
    chip/compiler.h
    chip/part.h
    chip/report.h
    cpu/kernel_set.h
    cpu/placer.h
    cpu/support.h
    edgetpu/compiler.h
    edgetpu/numerics.h
    edgetpu/package.h
    edgetpu/params.h
    edgetpu/retarget.h
    graph/device_operator.h
    graph/executor.h
    graph/run_control.h
    model/builder.h
    model/graph.h
    model/operator.h
    model/tflite.h
    rk3588/layout.h
    rk3588/matmul.h
    runtime/device.h
    runtime/device_pool.h
    runtime/driver.h
    runtime/options.h
    runtime/registry.h
    runtime/session.h
    runtime/uri.h)
