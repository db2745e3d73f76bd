# As cmake/promised_headers.cmake; exports.map names their symbols.
list(APPEND REEF_PROMISED_HEADERS
    rk3588/layout.h
    rk3588/matmul.h)
