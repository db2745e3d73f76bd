# What Reef promises to programs that use the library: these headers are installed, compile alone
# without any other of Reef's, and have an example each in tests/api. All others in include/reef are
# doors between rooms and change without notice. cmake/exports.map.in names their symbols. A chip's own
# stand in the chip's folder, in two files of these names; a chip that promises nothing has none.
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
    graph/device_operator.h
    graph/executor.h
    graph/run_control.h
    model/builder.h
    model/graph.h
    model/operator.h
    model/tflite.h
    runtime/device.h
    runtime/device_pool.h
    runtime/driver.h
    runtime/options.h
    runtime/registry.h
    runtime/session.h
    runtime/uri.h)
foreach(chip IN LISTS REEF_CHIPS)
    include(${CMAKE_CURRENT_LIST_DIR}/../src/${chip}/promised_headers.cmake OPTIONAL)
endforeach()
