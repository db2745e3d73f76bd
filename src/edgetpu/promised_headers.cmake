# As cmake/promised_headers.cmake; exports.map names their symbols.
list(APPEND REEF_PROMISED_HEADERS
    edgetpu/compiler.h
    edgetpu/numerics.h
    edgetpu/package.h
    edgetpu/params.h
    edgetpu/retarget.h)
