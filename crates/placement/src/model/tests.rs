//! By hand, and against each other.
