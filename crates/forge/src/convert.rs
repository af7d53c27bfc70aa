//! Graphs in 16-bit floats.
