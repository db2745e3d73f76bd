// Layers whose instructions run again and again: the steps of an LSTM.
#pragma once

#include "edgetpu/layers/traced_layer.h"

namespace reef::edgetpu::layers {

/// Fills in the layer's tensor where one tile runs each of its instructions equally often: a column
/// for each time, with the results in the order in which they are stored. A step reads what the one
/// before it made, so that no grid says where its results belong: the tensor is one only if another
/// has the same values. Otherwise the layer's problem stays.
void gather_repeated(const Trace& trace, TracedLayer& layer);

}  // namespace reef::edgetpu::layers
