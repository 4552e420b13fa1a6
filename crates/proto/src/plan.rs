//! Which lanes frames to a peer take, and in what shares.
