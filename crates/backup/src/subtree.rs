//! Puts a subtree of a backup back into a running ensemble.
