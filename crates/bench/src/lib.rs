//! Experiments, one a file; results as JSON and SVG.
