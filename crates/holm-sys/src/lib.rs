//! The system calls that Holm needs and rustix lacks.
//!
//! All unsafe code of the project lives in this crate; every function here is safe to call.
