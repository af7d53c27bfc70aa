//! Graphs with quantisers around what is computed in bytes.
