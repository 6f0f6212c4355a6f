//! Model checks of the lock-free parts.
