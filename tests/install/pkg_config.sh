#!/bin/sh
# pkg_config.sh TREE SOURCE OUTPUT COMPILER [FLAGS]: builds and runs a program with pkg-config alone.
set -eu
tree=$1 source=$2 output=$3
shift 3
PKG_CONFIG_PATH=$(find "$tree" -type d -name pkgconfig)
export PKG_CONFIG_PATH
"$@" "$source" -o "$output" $(pkg-config --cflags --libs reef)
"$output"
