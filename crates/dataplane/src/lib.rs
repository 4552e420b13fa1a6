//! The BPF programs, their loader and typed maps.
