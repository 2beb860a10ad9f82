//! A guest's minimal init: runs one command or some services, reaps what is left behind, and ends
//! in good order.
//!
//! [`holm_proto::init`] describes its arguments. Holm has mounted everything before it starts.

mod arguments;
mod notify;
mod report;
mod run;
mod service;
mod start;

pub use run::run;
