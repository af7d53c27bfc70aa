//! Checkpoints as ONNX: the module tree is walked, batch norms are folded, and a graph is written as Ultralytics names it.
